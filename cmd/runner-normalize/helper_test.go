package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const testRun = "run_t"

// raw builds raw events for one test. seq, ktime and cpu_seq count by themselves; the messages of a sendmmsg have one ktime.
type raw struct {
	events []schemas.RawEvent
}

func (r *raw) add(pid, tid uint32, op string, edit ...func(*schemas.RawEvent)) {
	e := schemas.RawEvent{Op: op, PID: pid, TID: tid, CgroupID: 77}
	for _, f := range edit {
		f(&e)
	}
	r.events = append(r.events, e)
}

type edit = func(*schemas.RawEvent)

func ret(v int64) edit { return func(e *schemas.RawEvent) { e.Ret = v; e.Has |= schemas.HasRet } }
func path(v string) edit {
	return func(e *schemas.RawEvent) { e.Path = []byte(v) }
}
func path2(v string) edit { return func(e *schemas.RawEvent) { e.Path2 = []byte(v) } }
func user(base, v string) edit {
	return func(e *schemas.RawEvent) {
		e.UserPath = []byte(v)
		if base != "" {
			e.Base = []byte(base)
		}
	}
}
func user2(base, v string) edit {
	return func(e *schemas.RawEvent) {
		e.UserPath2 = []byte(v)
		if base != "" {
			e.Base2 = []byte(base)
		}
	}
}
func flags(v uint64) edit {
	return func(e *schemas.RawEvent) {
		e.Flags, e.Has = v, e.Has|schemas.HasFlags|schemas.HasMode
	}
}
func marks(m schemas.Marks) edit { return func(e *schemas.RawEvent) { e.Marks = m } }
func socketOf(n uint64) edit {
	return func(e *schemas.RawEvent) { e.Socket = n; e.Has |= schemas.HasSocket }
}
func addr(source, v string) edit {
	return func(e *schemas.RawEvent) {
		e.Source = source
		if v != "" {
			e.Addr = []byte(v)
		}
	}
}
func child(pid, tid uint32) edit {
	return func(e *schemas.RawEvent) { e.ChildPID, e.ChildTID, e.Has = pid, tid, e.Has|schemas.HasChild }
}
func inSpace(ns, pid uint32) edit {
	return func(e *schemas.RawEvent) { e.NSPID, e.PIDNS, e.Has = pid, ns, e.Has|schemas.HasNSPID }
}
func oldTID(v uint32) edit {
	return func(e *schemas.RawEvent) { e.OldTID, e.Has = v, e.Has|schemas.HasOldTID }
}

// opened is a successful read-only open.
func opened(v string) edit {
	return func(e *schemas.RawEvent) { path(v)(e); flags(0)(e); ret(3)(e) }
}

// bytes is the whole stream.
func (r *raw) bytes(t testing.TB) []byte { return rawStream(t, r.events, nil) }

func rawStream(t testing.TB, events []schemas.RawEvent, change func(*schemas.StageHealth)) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := stream.NewWriter(&b, stream.Header{Stream: schemas.StreamRaw, RunID: testRun, Tool: "runner-capture", Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	check(w.Write(schemas.RunStarted{Schema: schemas.SchemaEvent, RunID: testRun, Type: "run_started", AgentShim: "none", Command: []string{"x"}, EnvKeys: []string{}}))
	var line []byte
	last := map[uint32]schemas.RawEvent{} // of each task
	for i := range events {
		e := events[i]
		e.Seq, e.KtimeNS = uint64(i), uint64(1000+i)
		if before := last[e.TID]; e.Op == "sendmmsg" && before.Op == e.Op && before.Source == e.Source {
			e.KtimeNS = before.KtimeNS // messages of one call
		}
		last[e.TID] = e
		if e.Has&schemas.HasProbe == 0 {
			e.CPUSeq = uint64(i)
		}
		line = e.AppendJSON(line[:0], testRun)
		check(w.WriteRaw(line))
	}
	zero := 0
	check(w.Write(schemas.RunFinished{Schema: schemas.SchemaEvent, RunID: testRun, Seq: 1, Type: "run_finished", ExitCode: &zero, Success: true}))
	h := captureHealth(uint64(len(events)))
	if change != nil {
		change(h)
	}
	check(w.Write(h))
	check(w.Seal(schemas.StatusComplete))
	return b.Bytes()
}

func captureHealth(out uint64) *schemas.StageHealth {
	return &schemas.StageHealth{
		Schema: schemas.SchemaStageHealth, RunID: testRun, Stage: "runner-capture", In: out, Out: out,
		Facts: map[string]string{"kernel_capture": "attached"},
	}
}

// call runs the tool in process.
func call(t testing.TB, in []byte, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	code, stdout, stderr = testkit.Call(app(), in, args...)
	return stdout, stderr, code
}

// result is a checked output stream, taken apart.
type result struct {
	events  []string // run events
	kernel  []string
	lines   []schemas.KernelEvent
	healths []schemas.StageHealth
	status  schemas.Status
}

func (r *result) own() schemas.StageHealth { return r.healths[len(r.healths)-1] }

func mustNormalize(t testing.TB, in []byte, args ...string) *result {
	t.Helper()
	out, errText, code := call(t, in, args...)
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, errText)
	}
	return parseOutput(t, out)
}

func parseOutput(t testing.TB, out string) *result {
	t.Helper()
	r, err := stream.NewReader(strings.NewReader(out), "out", schemas.StreamNormalized)
	if err != nil {
		t.Fatal(err)
	}
	res := &result{}
	p := schemas.NewKernelParser(testRun)
	for {
		rec, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		switch rec.Schema {
		case schemas.SchemaEvent:
			if len(res.kernel) > 0 || len(res.healths) > 0 {
				t.Fatal("a run event after others")
			}
			res.events = append(res.events, string(rec.Bytes))
		case schemas.SchemaKernelEvent:
			var k schemas.KernelEvent
			if err := p.Parse(rec.Bytes, &k); err != nil {
				t.Fatalf("%v: %s", err, rec.Bytes)
			}
			if again := k.AppendJSON(nil, testRun); !bytes.Equal(again, rec.Bytes) {
				t.Fatalf("not canonical: %s", rec.Bytes)
			}
			if k.Seq != uint64(len(res.kernel)) || len(res.healths) > 0 {
				t.Fatalf("seq %d at %d", k.Seq, len(res.kernel))
			}
			k.Value = bytes.Clone(k.Value)
			res.lines = append(res.lines, k)
			res.kernel = append(res.kernel, string(rec.Bytes))
		case schemas.SchemaStageHealth:
			var h schemas.StageHealth
			if err := schemas.Unmarshal(rec.Bytes, &h); err != nil {
				t.Fatal(err)
			}
			res.healths = append(res.healths, h)
		default:
			t.Fatalf("schema %s", rec.Schema)
		}
	}
	if len(res.healths) != 2 {
		t.Fatalf("%d stage healths, want 2", len(res.healths))
	}
	res.status = r.Trailer().Status
	own := res.own()
	sum := own.Out
	for rule, n := range own.Filtered {
		if n == 0 {
			t.Errorf("rule %s with a zero", rule)
		}
		sum += n
	}
	if own.In+own.Counters["added"] != sum || own.Out != uint64(len(res.kernel)) || own.In != res.healths[0].Out {
		t.Fatalf("not conserved: %+v with %d lines", own, len(res.kernel))
	}
	return res
}

// short is a compact form of the lines: pid, id, value and outcome.
func (r *result) short() []string {
	var out []string
	for _, k := range r.lines {
		s := fmt.Sprintf("%d %d ", k.PID, k.EventType)
		if k.Value == nil {
			s += "null"
		} else {
			s += string(k.Value)
		}
		if k.Has&schemas.KernelHasReturn != 0 {
			s += fmt.Sprintf(" %d", k.ReturnValue)
		}
		if k.Status != "" {
			s += " " + k.Status
		}
		out = append(out, s)
	}
	return out
}

func wantLines(t *testing.T, r *result, want ...string) {
	t.Helper()
	if got := strings.Join(r.short(), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// newTestNormalizer is one without streams.
func newTestNormalizer() (*normalizer, error) {
	n, err := newNormalizer(&tool.Env{Stderr: io.Discard}, Options{})
	if err == nil {
		n.store = newStore(arenaSize)
	}
	return n, err
}

// normalizeWithArena spills after so many bytes.
func normalizeWithArena(t testing.TB, in []byte, limit int) *result {
	t.Helper()
	var out bytes.Buffer
	env := &tool.Env{Stdout: &out, Stderr: io.Discard, Name: "runner-normalize"}
	if err := normalize(context.Background(), env, bytes.NewReader(in), "in", Options{}, limit); err != nil {
		t.Fatal(err)
	}
	return parseOutput(t, out.String())
}
