package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// filteredOf are the rules and values of the layer filtered that a run of the tool writes,
// and its note.
func filteredOf(t *testing.T, in []byte, table string) (lines []string, note string) {
	t.Helper()
	var out bytes.Buffer
	testkit.Must(t, normalize(context.Background(), &tool.Env{Stdout: &out}, bytes.NewReader(in), "in", Options{Filtered: true, Noise: table}, arenaSize))
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, `"`+schemas.SchemaFiltered+`"`) {
			f, err := schemas.ParseFiltered([]byte(strings.TrimSuffix(line, "\n")))
			testkit.Must(t, err)
			if f.Seq != uint64(len(lines)) {
				t.Errorf("seq %d, expected %d", f.Seq, len(lines))
			}
			lines = append(lines, f.Rule+" "+f.Value)
		}
		if _, rest, there := strings.Cut(line, "normalize_noise: "); there {
			note, _, _ = strings.Cut(rest, `"`)
		}
	}
	return lines, note
}

// TestFiltered: the layer has each value once, sorted, without numbers of processes, whatever
// the order was in which things happened.
func TestFiltered(t *testing.T) {
	paths := []string{"/usr/lib/b.so", "/proc/43/maps", "/usr/lib/a.so", "/proc/42/maps", "/usr/lib/b.so", "/etc/ld.so.cache", "/work/node_modules/x.js"}
	for turn := range 2 {
		var r raw
		for i := range paths {
			if turn == 1 {
				i = len(paths) - 1 - i
			}
			pid := uint32(42)
			if strings.Contains(paths[i], "43") {
				pid = 43
			}
			r.add(pid, pid, "openat", opened(paths[i]))
		}
		in := r.bytes(t)
		for table, want := range map[string]string{
			"v0":     "[introspect.proc /proc/[pid]/maps loader.cache /etc/ld.so.cache loader.usr_lib /usr/lib/a.so loader.usr_lib /usr/lib/b.so runtime.node /work/node_modules/x.js] table=v0 values=5 omitted=0",
			"loader": "[introspect.proc /proc/[pid]/maps loader.cache /etc/ld.so.cache loader.usr_lib /usr/lib/a.so loader.usr_lib /usr/lib/b.so] table=loader values=4 omitted=0",
			"none":   "[] table=none values=0 omitted=0",
		} {
			lines, note := filteredOf(t, in, table)
			if got := fmt.Sprint(lines, " ", note); got != want {
				t.Errorf("%s: %s\nwant %s", table, got, want)
			}
		}
	}
}

// TestFilteredBound: of a rule with too many values the first are in the layer, and the
// others are counted.
func TestFilteredBound(t *testing.T) {
	const more = 3
	var r raw
	for i := range schemas.MaxFilteredValues + more {
		r.add(42, 42, "openat", opened(fmt.Sprintf("/usr/lib/%05d", i)))
	}
	r.add(42, 42, "openat", opened("/usr/share/locale/x"))
	lines, note := filteredOf(t, r.bytes(t), "v0")
	if n := len(lines); n != schemas.MaxFilteredValues+1 || lines[n-2] != fmt.Sprintf("loader.usr_lib /usr/lib/%05d", schemas.MaxFilteredValues-1) ||
		note != fmt.Sprintf("table=v0 values=%d omitted=%d", n, more) {
		t.Errorf("%d lines, the last but one %s, note %s", n, lines[n-2], note)
	}
}
