package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

func TestRefusals(t *testing.T) {
	line := func(s string) func(w *stream.Writer) { return func(w *stream.Writer) { w.WriteRaw([]byte(s)) } }
	head := `{"schema":"assay.runner.kernel_event.v0","run_id":"run_01",`
	for _, c := range []struct {
		name string
		in   input
		want string
	}{
		{"gap in seq", input{raw: line(head + `"seq":1,"pid":1,"event_type":4,"kind":"exec","value":"/x"}`)}, "stdin:4: malformed line: kernel line has seq 1, expected 0"},
		{"bad kernel line", input{raw: line(head + `"seq":0,"pid":1,"event_type":4,"kind":"openat","value":"/x"}`)}, "stdin:4: malformed line: kernel line: "},
		{"kernel line with bad UTF-8", input{raw: line(head + `"seq":0,"pid":1,"event_type":4,"kind":"exec","value":"/x` + "\xff" + `"}`)}, "stdin:4: malformed line: kernel line: "},
		{"kernel line with a control character", input{raw: line(head + `"seq":0,"pid":1,"event_type":4,"kind":"exec","value":"/x` + "\x01" + `"}`)}, "stdin:4: malformed line: kernel line: "},
		{"kernel line with a blank", input{raw: line(head + `"seq":0, "pid":1,"event_type":4,"kind":"exec","value":"/x"}`)}, "stdin:4: malformed line: kernel line: "},
		{"unknown schema", input{raw: line(`{"schema":"other","run_id":"run_01"}`)}, `unknown schema "other"`},
		{"event after lines", input{events: fixture[:1], raw: line(`{"schema":"assay.runner.event.v0","run_id":"run_01"}`)}, "follows"},
		{"surface entry in input", input{raw: line(`{"schema":"runner.surface_entry.v0","run_id":"run_01"}`)}, "unknown schema"},
		{"line not counted", input{raw: line(head + `"seq":0,"pid":1,"event_type":4,"kind":"exec","value":"/x"}`)}, "the stream has 1"},
		{"capture and normalize differ", input{events: fixture, change: func(c, n *schemas.StageHealth) { n.In++ }}, "read 14"},
		{"filtered not counted", input{events: fixture, change: func(c, n *schemas.StageHealth) { n.Filtered["loader.lib"] = 1 }}, "filtered 1"},
		{"an unknown filter", input{events: fixture, filtered: map[string]uint64{"x": 1}}, "no rule"},
		{"filters that wrap", input{events: fixture, change: func(c, n *schemas.StageHealth) {
			n.Filtered["loader.lib"], n.Filtered["tree.exit"] = 1<<63, 1<<63
		}}, "filtered 0"},
		{"added that wraps", input{events: fixture, change: func(c, n *schemas.StageHealth) { n.Counters["added"] = 1<<64 - 1 }}, "wrote"},
		{"drops by operation without drops", input{counters: map[string]uint64{"dropped.openat": 7}}, "by operation 7"},
		{"drops of some operations", input{counters: map[string]uint64{"dropped": 7, "dropped.openat": 6}}, "by operation 6"},
		{"drops that wrap", input{counters: map[string]uint64{"dropped.openat": 1 << 63, "dropped.unlink": 1 << 63}}, "room"},
		{"a dropped move", input{counters: map[string]uint64{"dropped": 1, "dropped.move": 1}}, "0 escapes, but 1 moves"},
		{"a counter that nobody knows", input{counters: map[string]uint64{"nonsense": 1}}, "reports a counter \"nonsense\", which this release does not know"},
		{"a dropped fork and foreign moves", input{counters: map[string]uint64{"dropped": 1, "dropped.fork": 1, "foreign": 2, "read": 4, "emitted": 4, "seen": 5}}, "0 escapes, but 2 moves"},
		{"emitted that wraps", input{counters: map[string]uint64{"emitted": 1<<64 - 1, "dropped": 2}}, "room"},
		{"a foreign note", input{notes: []string{"s2_survivors_killed: 1"}}, "no note of it"},
		{"a note of another form", input{notes: []string{"canonical_pids: yes"}}, "not of the form"},
		{"a note about --drop without a filter", input{notes: []string{schemas.NoteDrop.Format("", schemas.DropDigest(""), uint64(3))}}, "its note says 3"},
		{"counter missing", input{change: func(c, n *schemas.StageHealth) { delete(c.Counters, "dropped") }}, `no counter "dropped"`},
		{"fact missing", input{change: func(c, n *schemas.StageHealth) { delete(c.Facts, "end") }}, `no fact "end"`},
		{"fact unknown", input{facts: map[string]string{"canary_after": "maybe"}}, `canary_after="maybe"`},
		{"redundant unknown", input{facts: map[string]string{"redundant": "on: lost=x"}}, `redundant="on: lost=x"`},
		{"read does not add up", input{counters: map[string]uint64{"foreign": 1}}, "accounts for"},
		{"wrong stage", input{change: func(c, n *schemas.StageHealth) { n.Stage = "jq" }}, `stage health of "jq", expected runner-normalize`},
		{"capture on another system than Linux", input{facts: map[string]string{"platform": "macos"}}, "claims a kernel capture"},
		{"events without capture", input{events: fixture[:1], facts: map[string]string{"kernel_capture": "not_requested"}}, "without a kernel capture"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, stderr := call(c.in.build(t))
			if code != 3 || !strings.Contains(stderr, c.want) {
				t.Errorf("exit %d, stderr %q, expected 3 and %q", code, stderr, c.want)
			}
			if bytes.Contains(out, []byte(schemas.SchemaTrailer)) {
				t.Error("a refused stream was sealed")
			}
		})
	}
}

// TestCollectedLogLeftOut: a log that the run collected cannot be left out.
func TestCollectedLogLeftOut(t *testing.T) {
	for log, in := range map[string]input{
		"policy": {shim: "none", envKeys: []string{schemas.EnvPolicyLog, schemas.EnvRunID}},
		"sdk":    {shim: "openai-agents", envKeys: []string{schemas.EnvRunID, schemas.EnvSDKLog, schemas.EnvSDKSchema}},
	} {
		code, out, stderr := call(in.build(t))
		if code != 2 || !strings.Contains(stderr, "runner-correlate --"+log+" FILE") || bytes.Contains(out, []byte(schemas.SchemaTrailer)) {
			t.Errorf("%s: exit %d: %s", log, code, stderr)
		}
	}
}

// TestCollectedLogEmpty: a full disk can leave an empty file in the place of a log that the run collected. It does not read like a log to
// which nobody wrote.
func TestCollectedLogEmpty(t *testing.T) {
	in := input{shim: "none", envKeys: []string{schemas.EnvPolicyLog, schemas.EnvRunID}}
	whole := collect(t, schemas.StreamPolicyLog, decisionLog(t, one), logHealth{})
	log := filepath.Join(t.TempDir(), "policy.log.ndjson")
	for _, c := range []struct {
		b    []byte
		code int
	}{{nil, 3}, {whole[:len(whole)-1], 3}, {whole, 0}, {decisionLog(t, one), 0}} {
		testkit.Must(t, os.WriteFile(log, c.b, 0o644))
		code, out, stderr := call(in.build(t), "--policy", log)
		if code != c.code || bytes.Contains(out, []byte(schemas.SchemaTrailer)) != (code == 0) {
			t.Errorf("%d bytes: exit %d: %s", len(c.b), code, stderr)
		}
	}
	testkit.Must(t, os.WriteFile(log, nil, 0o644))
	if code, _, stderr := call(input{}.build(t), "--policy", log); code != 0 {
		t.Errorf("a plain one of a run that collected none: exit %d: %s", code, stderr)
	}
}

// TestNoShimNoSDK: a run that set up no shim has no SDK layer, even if there is a log.
func TestNoShimNoSDK(t *testing.T) {
	log := filepath.Join(t.TempDir(), "sdk.ndjson")
	testkit.Must(t, os.WriteFile(log, sdkEvents(oneSDK), 0o644))
	code, out, stderr := call(input{}.build(t), "--sdk", log)
	if code != 3 || !strings.Contains(stderr, "agent_shim none") || bytes.Contains(out, []byte(schemas.SchemaTrailer)) {
		t.Errorf("exit %d, stderr %q, expected 3, the reason and no seal", code, stderr)
	}
}

func TestEveryPrefixRefused(t *testing.T) {
	in := input{events: fixture[:3]}.build(t)
	for n := range in {
		code, out, _ := call(in[:n])
		if code != 3 || bytes.Contains(out, []byte(schemas.SchemaTrailer)) {
			t.Fatalf("prefix of %d bytes: exit %d", n, code)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"--policy", ""}, {"--sdk", ""}, {"--policy", "x", "--policy", "x"}, {"--nonsense"}, {"a", "b"}, {"-v", "-v"}} {
		if code, out, stderr := call(nil, args...); code != 2 || len(out) > 0 || stderr == "" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, out, stderr)
		}
	}
	if code, out, _ := call(nil, "--help"); code != 0 || strings.TrimSpace(string(out)) != strings.TrimSpace(usage) {
		t.Errorf("--help: exit %d, %q", code, out)
	}
}

type fullDisk struct{ left int }

func (f *fullDisk) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

func TestWriteFailure(t *testing.T) {
	in := input{events: fixture}.build(t)
	_, whole, _ := call(in)
	for _, n := range []int{0, 1, 200, len(whole) - 1} {
		var stderr bytes.Buffer
		if code := app().Call(context.Background(), bytes.NewReader(in), &fullDisk{n}, &stderr, nil); code != 5 {
			t.Errorf("room for %d bytes: exit %d, expected 5: %s", n, code, stderr.String())
		}
	}
}
