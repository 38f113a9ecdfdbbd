package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

func sample() *raw {
	var r raw
	r.add(10, 10, "exec", path("/bin/sh"), user("/", "/bin/sh"), ret(0))
	r.add(10, 10, "openat", opened("/etc/ld.so.cache"))
	r.add(10, 10, "fork", child(11, 11))
	r.add(11, 11, "rename", user("/w", "a"), user2("/w", "b"), ret(0))
	r.add(10, 10, "openat", opened("/w/in"))
	r.add(11, 11, "exit")
	return &r
}

func TestForwardsOriginals(t *testing.T) {
	in := sample().bytes(t)
	got := mustNormalize(t, in)
	lines := strings.Split(string(in), "\n")
	if len(got.events) != 2 || got.events[0] != lines[1] || got.events[1] != lines[len(lines)-4] {
		t.Errorf("run events %q", got.events)
	}
	out, _, _ := call(t, in)
	if !strings.Contains(out, "\n"+lines[len(lines)-3]+"\n"+`{"schema":"runner.stage_health.v0","run_id":"run_t","stage":"runner-normalize","in":6,"out":4,`+
		`"filtered":{"loader.cache":1,"tree.exit":1,"tree.fork":1},"counters":{"added":1,"hook_only":0,"lexical":2,"null_values":0,"orphans":1,"processes":2,"tasks":2},"facts":{},"notes":[]}`+"\n") {
		t.Errorf("healths of\n%s", out)
	}
	wantLines(t, got, "10 4 /bin/sh 0 success", "10 1 /w/in 3 success", "11 213 /w/a 0 success", "11 214 /w/b 0 success")
}

func TestStatusIsPassedOn(t *testing.T) {
	in := string(sample().bytes(t))
	in = strings.Replace(in, `"status":"complete"}`+"\n", `"status":"partial"}`+"\n", 1)
	if got := mustNormalize(t, []byte(in)); got.status != schemas.StatusPartial {
		t.Errorf("status %s", got.status)
	}
}

func TestNoCapture(t *testing.T) {
	in := rawStream(t, nil, func(h *schemas.StageHealth) { h.Stage = "runner-exec"; h.Facts["kernel_capture"] = "not_requested" })
	got := mustNormalize(t, in)
	if h := got.own(); len(got.events) != 2 || len(got.lines) != 0 || h.In != 0 || h.Out != 0 || len(h.Filtered) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestEveryPrefixIsRefused also shows that nothing but the header comes out
// before the whole input was checked.
func TestEveryPrefixIsRefused(t *testing.T) {
	in := sample().bytes(t)
	for i := range len(in) {
		out, msg, code := call(t, in[:i])
		if code != 3 || msg == "" {
			t.Fatalf("prefix of %d bytes: exit %d %s", i, code, msg)
		}
		if strings.Count(out, "\n") > 1 || out != "" && !strings.HasPrefix(out, `{"schema":"runner.stream_header.v0","stream":"kernel.normalized"`) {
			t.Fatalf("prefix of %d bytes: wrote %q", i, out)
		}
	}
	if _, _, code := call(t, append(in, '\n')); code != 3 {
		t.Error("trailing byte accepted")
	}
}

// sealed builds a stream of arbitrary record lines with a good trailer.
func sealed(t testing.TB, name string, records ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := stream.NewWriter(&b, stream.Header{Stream: name, RunID: testRun, Tool: "x", Version: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.WriteRaw([]byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Seal(schemas.StatusComplete); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRefusals(t *testing.T) {
	all := strings.Split(strings.TrimSpace(string(sample().bytes(t))), "\n")
	started, events, finished, health := all[1], all[2:8], all[8], all[9]
	edit := func(s, old, new string) string {
		if !strings.Contains(s, old) {
			t.Fatalf("no %s in %s", old, s)
		}
		return strings.Replace(s, old, new, 1)
	}
	list := func(parts ...any) (out []string) {
		for _, p := range parts {
			switch p := p.(type) {
			case string:
				out = append(out, p)
			case []string:
				out = append(out, p...)
			}
		}
		return out
	}
	for _, c := range []struct {
		name    string
		stream  string
		records []string
		want    string
	}{
		{"as it is", schemas.StreamRaw, list(started, events, finished, health), ""},
		{"another stream", schemas.StreamNormalized, list(started, events, finished, health), "not a runner stream"},
		{"no health", schemas.StreamRaw, list(started, events, finished), "no stage health"},
		{"two healths", schemas.StreamRaw, list(started, events, finished, health, health), "after the stage health"},
		{"an event after it", schemas.StreamRaw, list(started, events, finished, health, events[5]), "after the stage health"},
		{"health of another stage", schemas.StreamRaw, list(started, events, finished, edit(health, `"kernel_capture"`, `"x"`)), "kernel_capture"},
		{"health with a new key", schemas.StreamRaw, list(started, events, finished, edit(health, `"stage"`, `"stages"`)), "bad stage health"},
		{"one event less", schemas.StreamRaw, list(started, events[:5], finished, health), "wrote 6 events, read 5"},
		{"an event left out", schemas.StreamRaw, list(started, events[:2], events[3:], finished, health), "seq 3, expected 2"},
		{"an event twice", schemas.StreamRaw, list(started, events[:2], events[1:], finished, health), "seq 1, expected 2"},
		{"unknown op", schemas.StreamRaw, list(started, edit(events[0], `"op":"exec"`, `"op":"exit2"`), events[1:], finished, health), ""},
		{"unknown key", schemas.StreamRaw, list(started, edit(events[0], `,"ret":0`, `,"rets":0`), events[1:], finished, health), "unknown key"},
		{"unknown schema", schemas.StreamRaw, list(started, edit(events[0], "raw_event.v0", "raw_event.v1"), events[1:], finished, health), "unknown schema"},
		{"kernel line", schemas.StreamRaw, list(started, `{"schema":"assay.runner.kernel_event.v0","run_id":"run_t"}`, finished, health), "unknown schema"},
		{"finished first", schemas.StreamRaw, list(finished, events, started, health), "run event"},
		{"no end of the run", schemas.StreamRaw, list(started, events, health), "1 run events, expected"},
		{"no run events", schemas.StreamRaw, list(events, health), "0 run events, expected"},
		{"three run events", schemas.StreamRaw, list(started, finished, events, finished, health), "third run event"},
		{"another run", schemas.StreamRaw, list(started, edit(events[0], "run_t", "run_u"), events[1:], finished, health), "another run"},
		{"fork without a child", schemas.StreamRaw, list(started, events[:2], edit(events[2], `,"child_pid":11,"child_tid":11`, ""), events[3:], finished, health), "child_pid"},
		{"a failed exec that worked", schemas.StreamRaw, list(started, edit(events[0], `"op":"exec"`, `"op":"execve"`), events[1:], finished, health), "failed ones only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, msg, code := call(t, sealed(t, c.stream, c.records...))
			if c.name == "as it is" {
				if code != 0 {
					t.Fatal(msg)
				}
				return
			}
			if code != 3 || !strings.Contains(msg, c.want) {
				t.Errorf("exit %d: %s", code, msg)
			}
			if strings.Contains(out, "trailer") || strings.Count(out, "\n") > 1 {
				t.Errorf("wrote %q", out)
			}
		})
	}
}

type badWriter struct{ left int }

func (w *badWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(b), nil
}

type badReader struct{}

func (badReader) Read([]byte) (int, error) { return 0, errors.New("input/output error") }

func TestIOErrors(t *testing.T) {
	in := sample().bytes(t)
	out, _, _ := call(t, in)
	for left := 0; left < len(out); left += 13 {
		var msg bytes.Buffer
		if code := app().Call(context.Background(), bytes.NewReader(in), &badWriter{left}, &msg, nil); code != 5 {
			t.Fatalf("room for %d bytes: exit %d %s", left, code, msg.String())
		}
	}
	var msg bytes.Buffer
	if code := app().Call(context.Background(), badReader{}, &bytes.Buffer{}, &msg, nil); code != 5 {
		t.Errorf("exit %d %s", code, msg.String())
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	var stdout bytes.Buffer
	err := normalize(context.Background(), &tool.Env{Stdout: &stdout}, bytes.NewReader(in), "in", Options{}, 10)
	var e *tool.Error
	if !errors.As(err, &e) || e.Code != 5 || len(e.Hints) != 1 || strings.Count(stdout.String(), "\n") != 1 {
		t.Errorf("no directory to spool in: %v", err)
	}
}

func TestCalls(t *testing.T) {
	in := sample().bytes(t)
	file := filepath.Join(t.TempDir(), "raw.ndjson")
	if err := os.WriteFile(file, in, 0o600); err != nil {
		t.Fatal(err)
	}
	want, _, _ := call(t, in)
	if got, msg, code := call(t, nil, file); code != 0 || got != want {
		t.Errorf("exit %d %s", code, msg)
	}
	if got, msg, code := call(t, in, "-"); code != 0 || got != want || msg != "" {
		t.Errorf("exit %d %s", code, msg)
	}
	if _, msg, code := call(t, in, "-v"); code != 0 || !strings.Contains(msg, "6 events in, 4 lines out, 2 tasks in 2 processes") {
		t.Errorf("exit %d %s", code, msg)
	}
	for _, args := range [][]string{{"--nope"}, {file, file}, {"--drop", "true", "--drop", "true"}, {file, "--drop"}} {
		if out, msg, code := call(t, in, args...); code != 2 || out != "" {
			t.Errorf("%q: exit %d %s", args, code, msg)
		}
	}
	if out, _, code := call(t, nil, "--help"); code != 0 || !strings.HasPrefix(out, "runner-normalize ") {
		t.Errorf("help: %s", out)
	}
}

func TestDrop(t *testing.T) {
	in := sample().bytes(t)
	const program = `.value | startswith("/w/")`
	got := mustNormalize(t, in, "--drop", program)
	wantLines(t, got, "10 4 /bin/sh 0 success")
	h := got.own()
	want := fmt.Sprintf(`normalize_drop: program=".value | startswith(\"/w/\")" sha256=%x dropped=3`, sha256.Sum256([]byte(program)))
	if h.Filtered[schemas.FilterDrop] != 3 || len(h.Notes) != 1 || h.Notes[0] != want {
		t.Errorf("%+v\nwant %s", h, want)
	}
	if h := mustNormalize(t, in, "--drop", "false").own(); len(h.Notes) != 1 || h.Filtered[schemas.FilterDrop] != 0 {
		t.Errorf("%+v", h)
	}
	if got := mustNormalize(t, in, "--drop", ".seq == 0 and .pid == 1", "--canonical-pids"); len(got.lines) != 2 {
		t.Errorf("%q", got.short())
	}
	// Numbers keep their digits.
	var r raw
	r.add(1, 1, "openat", path("/w"), flags(1<<64-1), ret(3))
	if got := mustNormalize(t, r.bytes(t), "--drop", ".flags == 18446744073709551615 and .flags != 18446744073709551614"); len(got.lines) != 0 {
		t.Errorf("%q", got.short())
	}
}

func TestBadDrop(t *testing.T) {
	in := sample().bytes(t)
	for program, want := range map[string]string{
		"": "", "(": "unexpected", "nope": "not defined", "$x": "variable",
		"input": "not available", "[inputs]": "not available", "debug": "not available", "env": "not available",
		"$ENV.HOME": "not available", "def f: env; f": "not available", `import "a" as a; true`: "not available",
		`include "a"; true`: "not available", "if .x then halt else true end": "not available", "now > 3": "not available",
		`[.[] | (. as [$a] | $ENV)] | true`: "not available", `"\(env)"`: "not available", `{a: env}`: "not available",
		"try input catch true": "not available", `@base64 "\($ENV)"`: "not available",
		".value": "not true or false but string", "null": "not true or false but null", "empty": "no answer",
		"true, false": "more than one answer", "error": "--drop:", ".pid.x": "expected an object",
		"true, error": "--drop:",
	} {
		out, msg, code := call(t, in, "--drop", program)
		if code != 2 || !strings.Contains(msg, want) {
			t.Errorf("%s: exit %d %s", program, code, msg)
		}
		if strings.Contains(out, "trailer") {
			t.Errorf("%s: sealed", program)
		}
	}
	if _, msg, code := call(t, in, "--drop", "[recurse(. + 1; true)] | true"); code != 2 {
		t.Errorf("endless: exit %d %s", code, msg)
	}
	if _, msg, code := call(t, in, "--drop", "\xff"); code != 2 || !strings.Contains(msg, "UTF-8") {
		t.Errorf("exit %d %s", code, msg)
	}
}

func TestShowFiltered(t *testing.T) {
	var r raw
	r.add(1, 1, "openat", opened("/lib/\x1b[31m\u202eevil\nname"))
	r.add(1, 1, "connect", addr("cgroup", "1.1.1.1:1"))
	r.add(1, 1, "connect", addr("syscall", "1.1.1.1:1"), ret(0))
	r.add(1, 1, "exit")
	in := r.bytes(t)
	_, msg, code := call(t, in, "--show-filtered", "--drop", "true")
	want := `runner-normalize: filtered loader.lib /lib/\u{1b}[31m\u{202e}evil\u{a}name (libraries of the system)
runner-normalize: filtered twin.sock_hook 1.1.1.1:1 (the call itself is recorded, with its outcome)
runner-normalize: filtered tree.exit 1 (process tree, shown by the order of the lines)
runner-normalize: filtered user.drop {"schema":"assay.runner.kernel_event.v0","run_id":"run_t","seq":0,"pid":1,"event_type":2,"kind":"connect","value":"1.1.1.1:1","return_value":0,"status":"success"} (--drop says so)
runner-normalize: filtered loader.lib: 1
runner-normalize: filtered tree.exit: 1
runner-normalize: filtered twin.sock_hook: 1
runner-normalize: filtered user.drop: 1
runner-normalize: filtered 4 in all, of 4 events
`
	if code != 0 || msg != want {
		t.Errorf("exit %d, got\n%s\nwant\n%s", code, msg, want)
	}
	plain, _, _ := call(t, in)
	shown, _, _ := call(t, in, "--show-filtered")
	if plain != shown {
		t.Error("--show-filtered changed the stream")
	}
}

// TestRandomStreams puts arbitrary events through: mustNormalize checks that
// every line is well formed and that nothing vanished without a name.
func TestRandomStreams(t *testing.T) {
	names := []string{"/lib/a.so", "/w/a", "../b", "", "/proc/1/mem", "/proc/2/stat", "x/../y", "/dev/shm/a", `\\a\xff`, "/"}
	addrs := []string{"1.1.1.1:1", "unix:/x", "[::1]:2", ""}
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		pick := func(s []string) []byte {
			if rnd.IntN(3) == 0 {
				return nil
			}
			return []byte(s[rnd.IntN(len(s))])
		}
		var r raw
		for range rnd.IntN(300) {
			some, half := rnd.Uint32N(1<<13), rnd.Uint32N(1<<13)
			e := schemas.RawEvent{Op: schemas.RawOps[rnd.IntN(len(schemas.RawOps))], PID: rnd.Uint32N(6), Marks: schemas.Marks(some & half)}
			e.TID = e.PID + rnd.Uint32N(3)
			e.Path, e.UserPath, e.Base = pick(names), pick(names), pick(names)
			e.UserPath2, e.Base2, e.Interp = pick(names), pick(names), pick(names)
			e.Has = schemas.RawHas(rnd.Uint32N(1 << 10))
			e.Ret, e.Flags, e.Resolve = int64(rnd.IntN(50))-49, rnd.Uint64N(1<<12), rnd.Uint64N(3)
			switch e.Op {
			case "fork":
				e.Has |= schemas.HasChild
			case "execve", "execveat":
				e.Ret--
			}
			e.ChildPID, e.ChildTID, e.OldTID = rnd.Uint32N(6), rnd.Uint32N(8), rnd.Uint32N(8)
			switch e.Op {
			case "connect", "sendto", "sendmsg", "sendmmsg", "bind":
				e.Source, e.Addr = schemas.RawSources[rnd.IntN(3)], pick(addrs)
			}
			r.events = append(r.events, e)
		}
		in := r.bytes(t)
		a, b := mustNormalize(t, in), normalizeWithArena(t, in, 500)
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("seed %d: the size of the arena shows", seed)
		}
		mustNormalize(t, in, "--canonical-pids", "--drop", ".event_type == 1")
	}
}

// The stream leaves it to the parser of raw events to refuse what is neither UTF-8 nor escaped.
func TestRefusesBytes(t *testing.T) {
	var r raw
	r.add(1, 1, "openat", opened("/w/NAME"), path2("NAME"))
	in := string(r.bytes(t))
	for _, bad := range []string{"\xff", "\x01", "\xed\xa0\x80", "\t"} {
		for n := range strings.Count(in, "NAME") {
			at := 0
			for range n + 1 {
				at += strings.Index(in[at:], "NAME") + 1
			}
			lines := strings.Split(strings.TrimSuffix(in[:at-1]+bad+in[at:], "\n"), "\n")
			out, msg, code := call(t, sealed(t, schemas.StreamRaw, lines[1:len(lines)-1]...))
			if code != 3 || strings.Contains(out, "trailer") || msg == "" {
				t.Errorf("%q in name %d: exit %d %s", bad, n+1, code, msg)
			}
		}
	}
}
