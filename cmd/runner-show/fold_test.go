package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/schemas"
)

func folded(n int, names ...string) string {
	m := newModel(true)
	var f fold
	for _, name := range names {
		m.add(&f, name)
	}
	var b strings.Builder
	for _, r := range m.rows(&f, n) {
		fmt.Fprintf(&b, "%s=%d ", r.name, r.names)
	}
	return strings.TrimSpace(b.String())
}

func TestRows(t *testing.T) {
	var many []string
	for i := range 212 {
		many = append(many, fmt.Sprintf("/usr/lib/x/f%03d", i))
	}
	for _, c := range []struct {
		n     int
		names []string
		want  string
	}{
		{6, nil, ""},
		{6, []string{"/a/b", "/a/b", "/a/b"}, "/a/b=1"},
		{6, []string{"/a/b", "/a/c"}, "/a/b=1 /a/c=1"},
		{1, []string{"/a/b", "/a/c"}, "/a/=2"},
		{6, many, "/usr/lib/x/=212"},
		{6, append([]string{"/etc/passwd", "/usr/bin/x"}, many...), "/usr/lib/x/=212 /etc/passwd=1 /usr/bin/x=1"},
		{2, append([]string{"/etc/passwd", "/usr/bin/x"}, many...), "/usr/=213 /etc/passwd=1"},
		{3, []string{"/a/x", "/b/x", "/c/x", "/d/x", "/e/x", "/e/y"}, "/…=3 /e/=2 /a/x=1"},
		{6, []string{"10.0.0.1:80", "unix:/run/a", "unix:/run/b"}, "10.0.0.1:80=1 unix:/run/a=1 unix:/run/b=1"},
		{2, []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"}, "10.0.0.1:80=1 10.0.0.2:80=1 10.0.0.3:80=1"},
		{2, []string{"/a/b", "/a/c", "10.0.0.1:80", "10.0.0.2:80"}, "/a/=2 10.0.0.1:80=1 10.0.0.2:80=1"},
		{6, []string{"/a", "/a/b", "/a/c", "/a.d"}, "/a=1 /a.d=1 /a/b=1 /a/c=1"},
		{3, []string{"/a", "/a/b", "/a/c", "/a.d"}, "/*=2 /a/b=1 /a/c=1"},
	} {
		if got := folded(c.n, c.names...); got != c.want {
			t.Errorf("%d rows of %.80q: %q, expected %q", c.n, c.names, got, c.want)
		}
	}
}

// Every name is counted in exactly one row, and what is beyond the bounds is counted too.
func TestRowsCountEveryName(t *testing.T) {
	for n := 1; n < 12; n++ {
		m := newModel(true)
		var f fold
		for i := range 5000 {
			m.add(&f, fmt.Sprintf("/%d/%d/%d", i%7, i%31, i))
		}
		total := 0
		rows := m.rows(&f, n)
		for _, r := range rows {
			total += r.names
		}
		if total != 5000 || len(rows) > n {
			t.Errorf("%d rows of at most %d have %d names", len(rows), n, total)
		}
	}
	m := newModel(true)
	m.bytes = maxNameBytes
	var f fold
	m.add(&f, "/x")
	if f.acts != 1 || f.lost != 1 || len(f.times) != 0 {
		t.Errorf("%+v", f)
	}
}

func TestManyProcesses(t *testing.T) {
	m := newModel(true)
	for i := range maxProcesses + 10 {
		m.take(&acts.Act{Path: "/x", Outcome: schemas.ActDone, Group: acts.Read, Process: acts.Process{PID: uint32(i + 1)}})
	}
	if len(m.processes) != maxProcesses || m.left != 10 || m.all.acts != maxProcesses+10 {
		t.Errorf("%d processes, %d left", len(m.processes), m.left)
	}
}

// Nothing that a terminal would act on or hide is printed, different names stay different in the
// list, and a line on the screen is not wider than it.
func TestHostileNames(t *testing.T) {
	hostile := []string{"/\x1b[2J", `/\x1b[2J`, "/\u202egnp.exe", "/a\u200bb", "/ab", "/a\u3164b", "/a\ufe0fb", "/a\nb", "/a\u00a0b", "/\xff", "/\u00ff", "/" + strings.Repeat("long", 1000)}
	seen := map[string]string{}
	for _, raw := range hostile {
		var b bytes.Buffer
		p := printer{w: &b}
		p.listLine(&acts.Act{Op: schemas.OpUnlink, Path: schemas.Text(raw), Outcome: schemas.ActDone, Process: acts.Process{PID: 1, Executable: schemas.Text(raw)}})
		line := b.String()
		if old, twice := seen[line]; twice {
			t.Errorf("%q and %q are printed alike", old, raw)
		}
		seen[line] = raw
		for _, r := range strings.TrimSuffix(line, "\n") {
			if r < ' ' || strings.ContainsRune("\u202e\u200b\u3164\ufe0f\u00a0\x7f", r) {
				t.Errorf("%q: the line holds %q", raw, r)
			}
		}
		b.Reset()
		p.width = 80
		p.items(4, "read       ", bold, []string{schemas.Text(raw), schemas.Text(raw)})
		for _, l := range strings.Split(b.String(), "\n") {
			if columns(l) > 80 {
				t.Errorf("%d columns: %q", columns(l), l)
			}
		}
	}
}

// Names that are too long stay different where they can: those of files that only their middle tells apart.
func TestShortNames(t *testing.T) {
	long := func(name string) string {
		return "/root/.config/go/telemetry/local/" + name + "@go1.26.8-go1.26.8-linux-amd64-2026-11-22.v1.count"
	}
	got := shortenAll([]string{"/short", long("link"), long("compile"), "/" + strings.Repeat("x", 100)}, 40)
	want := []string{"/short", "…/link@go1.26.…amd64-2026-11-22.v1.count", "…/compile@go1.…amd64-2026-11-22.v1.count", "/xxxxxxxxxxxx…" + strings.Repeat("x", 26)}
	for i := range want {
		if got[i] != want[i] || columns(got[i]) > 40 {
			t.Errorf("%q, expected %q", got[i], want[i])
		}
	}
}
