package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const testRun = "run_01"

// input describes a kernel.normalized stream to be made.
type input struct {
	events   []schemas.KernelEvent
	counters map[string]uint64 // changes to a clean capture's counters
	facts    map[string]string // the same for facts
	notes    []string          // of normalize
	added    uint64
	filtered map[string]uint64
	change   func(capture, normalize *schemas.StageHealth)
	status   schemas.Status
	raw      func(w *stream.Writer) // writes extra records before the healths
	shim     string
	envKeys  []string
	failed   bool // the command ended with 1
}

func ev(event uint32, value string) schemas.KernelEvent {
	return schemas.KernelEvent{PID: 100, EventType: event, Value: []byte(value), Has: schemas.KernelHasReturn, Status: schemas.StatusSuccess}
}

func (in input) build(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := stream.NewWriter(&b, stream.Header{Stream: schemas.StreamNormalized, RunID: testRun, Tool: "runner-normalize", Version: "test"})
	testkit.Must(t, err)
	if in.shim == "" {
		in.shim, in.envKeys = "none", []string{}
	}
	testkit.Must(t, w.Write(schemas.RunStarted{Schema: schemas.SchemaEvent, RunID: testRun, Type: "run_started", AgentShim: in.shim, Command: []string{"./agent.sh"}, EnvKeys: in.envKeys}))
	code := 0
	if in.failed {
		code = 1
	}
	testkit.Must(t, w.Write(schemas.RunFinished{Schema: schemas.SchemaEvent, RunID: testRun, Seq: 1, Type: "run_finished", ExitCode: &code, Success: code == 0}))
	var line []byte
	for i := range in.events {
		e := in.events[i]
		e.Seq = uint64(i)
		line = e.AppendJSON(line[:0], testRun)
		testkit.Must(t, w.WriteRaw(line))
	}
	if in.raw != nil {
		in.raw(w)
	}
	n := uint64(len(in.events))
	var filtered uint64
	for _, f := range in.filtered {
		filtered += f
	}
	raw := n + filtered - in.added
	c, nz := healths(raw, n)
	c.Counters["decode_errors"] = in.counters["decode_errors"]
	c.Counters["read"] += in.counters["decode_errors"]
	c.Counters["emitted"] = c.Counters["read"]
	c.Counters["seen"] = c.Counters["read"] + in.counters["dropped"]
	maps.Copy(c.Counters, in.counters)
	maps.Copy(c.Facts, in.facts)
	if in.filtered != nil {
		nz.Filtered = in.filtered
	}
	nz.Counters["added"] = in.added
	if in.notes != nil {
		nz.Notes = in.notes
	}
	if in.change != nil {
		in.change(c, nz)
	}
	testkit.Must(t, w.Write(c))
	testkit.Must(t, w.Write(nz))
	if in.status == "" {
		in.status = schemas.StatusComplete
	}
	testkit.Must(t, w.Seal(in.status))
	return b.Bytes()
}

// healths are those of a clean capture of raw events and of the n lines made of them.
func healths(raw, n uint64) (c, nz *schemas.StageHealth) {
	c = &schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: testRun, Stage: "runner-capture", In: raw, Out: raw,
		Filtered: map[string]uint64{}, Counters: map[string]uint64{}, Notes: []string{},
		Facts: map[string]string{"platform": "linux", "kernel_capture": "attached", "canary_before": "seen", "canary_after": "seen",
			"hooks_missing": "", "io_uring": "attached", "unix_hooks": "attached", "redundant": "off", "supervisor": "exec", "end": "empty"}}
	for _, name := range schemas.CountersOf(schemas.StageCapture, "") {
		c.Counters[name] = 0
	}
	c.Counters["canary"] = 2
	for _, name := range []string{"read", "emitted", "seen"} {
		c.Counters[name] = raw + 2
	}
	nz = &schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: testRun, Stage: "runner-normalize", In: raw, Out: n,
		Filtered: map[string]uint64{}, Counters: map[string]uint64{"added": 0}, Facts: map[string]string{}, Notes: []string{}}
	return c, nz
}

func call(in []byte, args ...string) (code int, out []byte, stderr string) {
	code, text, stderr := testkit.Call(app(), in, args...)
	return code, []byte(text), stderr
}

// absent is what runner-exec reports when nothing was captured.
func absent(state, platform string) func(c, n *schemas.StageHealth) {
	return func(c, _ *schemas.StageHealth) {
		c.Stage = "runner-exec"
		for k := range c.Counters {
			c.Counters[k] = 0
		}
		c.Facts["kernel_capture"], c.Facts["platform"] = state, platform
		c.Facts["canary_before"], c.Facts["canary_after"] = "not_run", "not_run"
	}
}

var fixture = []schemas.KernelEvent{
	ev(schemas.EventExec, "/usr/bin/dash"),
	ev(schemas.EventScript, "/tmp/agent.sh"),
	{PID: 100, EventType: schemas.EventOpenat, Value: []byte("/tmp/in"), Has: schemas.KernelHasFlags | schemas.KernelHasMode | schemas.KernelHasReturn, ReturnValue: 3, AccessMode: "read", Status: "success"},
	ev(schemas.EventOpenat, "/tmp/in"),
	ev(schemas.EventConnect, "127.0.0.1:8080"),
	ev(schemas.EventConnect, "unix:@bus"),
	ev(schemas.EventRenameFrom, "/tmp/new\nline"),
	ev(schemas.EventRenameTo, `/tmp/a\\b"c`),
	ev(schemas.EventMountSource, "tmpfs"),
	ev(schemas.EventOpenat, "/tmp/ÿ"),
	ev(schemas.EventOpenat, ""),
	{PID: 101, EventType: schemas.EventIOUringOther},
	ev(999, "what"),
}

func TestGolden(t *testing.T) {
	cases := map[string]input{
		"clean":         {events: fixture, filtered: map[string]uint64{"loader.lib": 7}, added: 1, notes: []string{schemas.NotePIDs.Format()}},
		"empty":         {},
		"dropped":       {events: fixture[:2], counters: map[string]uint64{"dropped": 3, "lexical": 2, "user_fault": 1}},
		"escaped":       {events: fixture[:6], counters: map[string]uint64{"escapes": 1, "dropped": 5, "inherited_fds": 3}},
		"hooks_missing": {events: fixture[:1], facts: map[string]string{"hooks_missing": "sendmsg4 openat2", "io_uring": "unavailable: no such tracepoint", "canary_after": "missed"}},
		"not_requested": {change: absent("not_requested", "linux")},
		"macos":         {change: absent("unsupported", "macos")},
		"survivors":     {events: fixture[:5], counters: map[string]uint64{"survivors_killed": 2}, facts: map[string]string{"end": "killed"}},
		"signal":        {events: fixture[:5], facts: map[string]string{"end": "signal", "supervisor": "none"}},
	}
	for name, in := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, stderr := call(in.build(t))
			if code != 0 || stderr != "" {
				t.Fatalf("exit %d: %s", code, stderr)
			}
			testkit.Golden(t, filepath.Join("testdata", name+".ndjson"), out)
			again, out2, _ := call(in.build(t))
			if again != 0 || !bytes.Equal(out, out2) {
				t.Error("a second run gives other bytes")
			}
		})
	}
}

// result is a joined stream, taken apart.
type result struct {
	health  schemas.Health
	report  schemas.Report
	entries []schemas.SurfaceEntry
	status  schemas.Status
	order   string
}

func parse(t testing.TB, out []byte) (r result) {
	t.Helper()
	in, err := stream.NewReader(bytes.NewReader(out), "out", schemas.StreamJoined)
	testkit.Must(t, err)
	for {
		rec, err := in.Next()
		if err == io.EOF {
			r.status = in.Trailer().Status
			return r
		}
		testkit.Must(t, err)
		if s := rec.Schema + " "; !strings.HasSuffix(r.order, s) {
			r.order += s
		}
		switch rec.Schema {
		case schemas.SchemaHealth:
			testkit.Must(t, schemas.Unmarshal(rec.Bytes, &r.health))
		case schemas.SchemaReport:
			testkit.Must(t, schemas.Unmarshal(rec.Bytes, &r.report))
		case schemas.SchemaSurfaceEntry:
			var e schemas.SurfaceEntry
			testkit.Must(t, schemas.Unmarshal(rec.Bytes, &e))
			r.entries = append(r.entries, e)
		}
	}
}

func joined(t testing.TB, in input) result {
	t.Helper()
	code, out, stderr := call(in.build(t))
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	return parse(t, out)
}

func TestForwardsOriginalBytes(t *testing.T) {
	in := input{events: fixture}.build(t)
	_, out, _ := call(in)
	lines := bytes.SplitAfter(in, []byte("\n"))
	body := bytes.Join(lines[1:len(lines)-4], nil)
	if !bytes.HasPrefix(out[bytes.IndexByte(out, '\n')+1:], body) {
		t.Error("events and kernel lines are not the input's bytes")
	}
	for _, h := range lines[len(lines)-4 : len(lines)-2] {
		if !bytes.Contains(out, h) {
			t.Errorf("stage health is not the input's bytes: %s", h)
		}
	}
}

func TestSurfacePermutation(t *testing.T) {
	want := joined(t, input{events: fixture}).entries
	for i := range 20 {
		events := append([]schemas.KernelEvent(nil), fixture...)
		rand.New(rand.NewPCG(uint64(i), 1)).Shuffle(len(events), func(a, b int) { events[a], events[b] = events[b], events[a] })
		if got := joined(t, input{events: events}).entries; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("shuffled input gives\n%v, expected\n%v", got, want)
		}
	}
}

func TestNetworkCoverage(t *testing.T) {
	drop := map[string]uint64{"dropped": 1}
	for _, c := range []struct {
		in              input
		coverage, scope string
	}{
		{input{}, "absent", "not_applicable"},
		{input{counters: drop}, "unknown", "unknown"},
		{input{events: []schemas.KernelEvent{ev(2, "unix:/run/x")}}, "absent", "not_applicable"},
		{input{events: []schemas.KernelEvent{{EventType: 2}}}, "absent", "not_applicable"},
		{input{events: []schemas.KernelEvent{ev(203, "0.0.0.0:80"), ev(204, "0.0.0.0:80")}}, "absent", "not_applicable"},
		{input{events: []schemas.KernelEvent{ev(2, "1.2.3.4:5")}}, "connect_only", "diagnostic_only"},
		{input{events: []schemas.KernelEvent{ev(20, "[::1]:5")}, counters: drop}, "connect_only", "diagnostic_only"},
		{input{events: []schemas.KernelEvent{ev(6, "1.2.3.4:5")}}, "datagram_peer_observed", "diagnostic_only"},
		{input{events: []schemas.KernelEvent{ev(202, "1.2.3.4:5"), ev(2, "[::1]:5")}}, "connect_and_datagram_peer_observed", "diagnostic_only"},
		{input{events: []schemas.KernelEvent{ev(2, "1.2.3.4:5")}, counters: map[string]uint64{"escapes": 1}}, "absent", "not_applicable"},
	} {
		h := joined(t, c.in).health
		if h.NetworkCoverage != c.coverage || h.EndpointScope != c.scope {
			t.Errorf("%v: got %s %s, expected %s %s", c.in, h.NetworkCoverage, h.EndpointScope, c.coverage, c.scope)
		}
	}
}

func TestEveryLossMakesTheLayerPartial(t *testing.T) {
	for _, r := range schemas.Counters {
		if r.Stage != schemas.StageCapture || r.Role != schemas.RoleLoss {
			continue
		}
		got := joined(t, input{counters: map[string]uint64{r.Name: 4}})
		if got.health.KernelLayer != schemas.LayerPartial || got.status != schemas.StatusPartial {
			t.Errorf("%s: kernel_layer=%s status=%s", r.Name, got.health.KernelLayer, got.status)
		}
		if !strings.Contains(strings.Join(got.health.Notes, "\n"), "s2_kernel_loss: "+r.Name+"=4") {
			t.Errorf("%s: no note names it: %q", r.Name, got.health.Notes)
		}
	}
	for cause, in := range map[string]input{
		"canary_before=missed": {facts: map[string]string{"canary_before": "missed"}},
		"canary_after=not_run": {facts: map[string]string{"canary_after": "not_run"}},
		"engines=crun,docker":  {facts: map[string]string{"engines": "crun docker"}},
		"hooks_missing=a,b":    {facts: map[string]string{"hooks_missing": "a b"}},
		"redundant_lost=2":     {facts: map[string]string{"redundant": "on: lost=2"}},
		"unaccounted=5":        {counters: map[string]uint64{"seen": 7}},
		"unread=1":             {counters: map[string]uint64{"emitted": 3, "seen": 3}},
		"recursion_misses=1 redundant_lost=2": {counters: map[string]uint64{"recursion_misses": 1},
			facts: map[string]string{"redundant": "on: lost=2"}},
	} {
		h := joined(t, in).health
		if h.KernelLayer != schemas.LayerPartial || len(h.Notes) < 2 || h.Notes[1] != "s2_kernel_loss: "+cause {
			t.Errorf("%s: %s %q", cause, h.KernelLayer, h.Notes)
		}
	}
	h := joined(t, input{counters: map[string]uint64{"covered_misses": 9}, facts: map[string]string{"redundant": "on: lost=0"}}).health
	if h.KernelLayer != schemas.LayerComplete {
		t.Errorf("recursion misses that the redundant mode covers: %s %q", h.KernelLayer, h.Notes)
	}
}

func TestPartialUpstreamStaysPartial(t *testing.T) {
	if got := joined(t, input{status: schemas.StatusPartial}); got.status != schemas.StatusPartial {
		t.Errorf("status %s, expected partial", got.status)
	}
}
