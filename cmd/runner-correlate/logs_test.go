package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestPlainAndCollectedAreTheSame: if a log has no fault, it does not matter whether it
// was collected, or in which order the flags are given.
func TestPlainAndCollectedAreTheSame(t *testing.T) {
	kernel := world{kernel: agent}.stream(t)
	policy, sdk := decisionLog(t, one), sdkEvents(oneSDK)
	want := join(t, kernel, policy, sdk).out
	for name, args := range map[string][]string{
		"both collected": logArgs(t, collect(t, schemas.StreamPolicyLog, policy, logHealth{}), collect(t, schemas.StreamSDKLog, sdk, logHealth{})),
		"one collected":  logArgs(t, policy, collect(t, schemas.StreamSDKLog, sdk, logHealth{})),
		"flags swapped":  slices.Concat(logArgs(t, nil, sdk), logArgs(t, policy, nil)),
		"blank lines":    logArgs(t, bytes.ReplaceAll(policy, []byte("\n"), []byte("\n \t\n\r\n")), append([]byte("\n\n"), sdk...)),
		"no last LF":     logArgs(t, bytes.TrimSuffix(policy, []byte("\n")), bytes.TrimSuffix(sdk, []byte("\n"))),
	} {
		code, out, msg := call(kernel, args...)
		if code != 0 || !bytes.Equal(out, want) {
			t.Errorf("%s: exit %d %s, or other bytes", name, code, msg)
		}
	}
}

func TestLogsThatAreNotWhole(t *testing.T) {
	kernel := world{kernel: agent}.stream(t)
	whole := collect(t, schemas.StreamPolicyLog, decisionLog(t, one), logHealth{})
	refused := func(name string, log []byte, want string) {
		t.Helper()
		for _, flag := range []string{"--policy"} {
			file := filepath.Join(t.TempDir(), "log")
			testkit.Must(t, os.WriteFile(file, log, 0o666))
			code, out, msg := call(kernel, flag, file)
			if code != 3 || !strings.Contains(msg, want) || !strings.Contains(msg, "log") || bytes.Contains(out, []byte(schemas.SchemaTrailer)) {
				t.Errorf("%s: exit %d, %q, expected 3 and %q", name, code, msg, want)
			}
		}
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	refused("no trailer", bytes.Join(lines[:len(lines)-2], nil), "truncated")
	refused("only the header", lines[0], "truncated")
	refused("cut in a line", whole[:len(whole)-10], "truncated")
	refused("a changed line", bytes.Replace(whole, []byte("read_file"), []byte("read_fil3"), 1), "digest")
	refused("bytes after the trailer", append(slices.Clone(whole), '\n'), "after the trailer")
	refused("the other log", collect(t, schemas.StreamSDKLog, nil, logHealth{}), `expected "policy.log"`)
	other := bytes.ReplaceAll(whole, []byte(testRun), []byte("run_02"))
	records := bytes.SplitAfter(other, []byte("\n"))
	var b bytes.Buffer
	w, err := stream.NewWriter(&b, stream.Header{Stream: schemas.StreamPolicyLog, RunID: "run_02", Tool: "runner-exec", Version: "test"})
	testkit.Must(t, err)
	for _, r := range records[1 : len(records)-2] {
		testkit.Must(t, w.WriteRaw(bytes.TrimSpace(r)))
	}
	testkit.Must(t, w.Seal(schemas.StatusComplete))
	refused("another run's", b.Bytes(), `log of run "run_02"`)
	for _, c := range []struct {
		h    logHealth
		want string
	}{
		{logHealth{counters: map[string]uint64{"lines": 7}}, "counted 7 lines"},
		{logHealth{facts: map[string]string{"stopped": "tired"}}, `stopped="tired"`},
		{logHealth{facts: map[string]string{"unterminated": ""}}, `unterminated=""`},
		{logHealth{facts: map[string]string{"replaced": "maybe"}}, `replaced="maybe"`},
		{logHealth{facts: map[string]string{"writers_at_end": "x"}}, `writers_at_end="x"`},
	} {
		refused(c.want, collect(t, schemas.StreamPolicyLog, nil, c.h), c.want)
	}
	bare := func(write func(w *stream.Writer)) []byte {
		var b bytes.Buffer
		w, err := stream.NewWriter(&b, stream.Header{Stream: schemas.StreamPolicyLog, RunID: testRun, Tool: "x", Version: "x"})
		testkit.Must(t, err)
		write(w)
		testkit.Must(t, w.Seal(schemas.StatusComplete))
		return b.Bytes()
	}
	refused("no health", bare(func(w *stream.Writer) {}), "no stage health")
	refused("a gap", bare(func(w *stream.Writer) {
		w.Write(schemas.LogLine{Schema: schemas.SchemaLogLine, RunID: testRun, Seq: 1})
	}), "seq 1, expected 0")
	for name, received := range map[string][2]uint64{"received before the line before it": {9, 8}, "received too late": {1, schemas.MaxTimeNS + 1}} {
		refused(name, bare(func(w *stream.Writer) {
			for i, ns := range received {
				testkit.Must(t, w.Write(schemas.LogLine{Schema: schemas.SchemaLogLine, RunID: testRun, Seq: uint64(i), Line: "{}", ReceivedNS: ns}))
			}
		}), "lines are read one after the other")
	}
	refused("another record", bare(func(w *stream.Writer) { w.WriteRaw([]byte(`{"schema":"x","run_id":"` + testRun + `"}`)) }), `unknown schema "x"`)
	refused("another stage", bare(func(w *stream.Writer) {
		w.Write(schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: testRun, Stage: "jq"})
	}), "expected runner-exec")
	for _, args := range [][]string{{"--policy", "/nowhere"}, {"--sdk", "/nowhere"}} {
		if code, _, msg := call(kernel, args...); code != 5 || !strings.Contains(msg, "/nowhere") {
			t.Errorf("%q: exit %d %s", args, code, msg)
		}
	}
	if code, _, msg := call(kernel, "--policy", t.TempDir()); code != 3 || !strings.Contains(msg, "directory") {
		t.Errorf("a directory: exit %d %s", code, msg)
	}
}

// TestPlainLimits: a file that exceeds the limits is read up to them.
func TestPlainLimits(t *testing.T) {
	kernel := world{kernel: agent}.stream(t)
	long := oneSDK + strings.Repeat("x", schemas.MaxLogLine) + "\n"
	for name, log := range map[string]string{
		"a long line":            string(sdkEvents(oneSDK)) + strings.Repeat("x", schemas.MaxLogLine+1) + "\nx\n",
		"a long line, no end":    string(sdkEvents(oneSDK)) + strings.Repeat("x", 2*schemas.MaxLogLine),
		"many lines":             string(sdkEvents(oneSDK)) + strings.Repeat("\n", schemas.MaxLogLines),
		"many bytes":             string(sdkEvents(oneSDK)) + strings.Repeat(strings.Repeat(" ", 60_000)+"\n", 600),
		"just within (is bad)":   "",
		"the longest (is blank)": "",
	} {
		switch name {
		case "just within (is bad)":
			if j := join(t, kernel, nil, sdkEvents(long)); !slices.Equal(j.report.Ambiguities, []string{"sdk_log_invalid:4:bad_json"}) {
				t.Errorf("%s: %q", name, j.report.Ambiguities)
			}
		case "the longest (is blank)":
			log = string(sdkEvents(oneSDK)) + strings.Repeat(" ", schemas.MaxLogLine) + "\n"
			if j := join(t, kernel, nil, []byte(log)); len(j.report.Ambiguities) > 0 {
				t.Errorf("%s: %q", name, j.report.Ambiguities)
			}
		default:
			if j := join(t, kernel, nil, []byte(log)); !slices.Equal(j.report.Ambiguities, []string{"sdk_log_flooded"}) || len(j.sdk) != 3 {
				t.Errorf("%s: %q, %d lines", name, j.report.Ambiguities, len(j.sdk))
			}
		}
	}
}

// TestLayerLimits: a log has more lines than are kept, or names more calls.
func TestLayerLimits(t *testing.T) {
	if testing.Short() {
		testkit.Skip(t, "logs of many lines take seconds; run without -short")
	}
	size := func(lines []string) (n int) {
		for _, l := range lines {
			n += len(l) + 1
		}
		return n
	}
	var policy, sdk strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&policy, `{"type":"assay.tool.decision","source":"s","data":{"tool":"t","tool_call_id":"%d","decision":"d"}}`+"\n", i)
		fmt.Fprintf(&sdk, `{"schema":"assay.runner.sdk_event.v0","run_id":"run_01","seq":%d,"event_type":"run_failed","source":"x"}`+"\n", i)
	}
	j := join(t, world{kernel: agent}.stream(t), []byte(policy.String()), []byte(sdk.String()))
	for name, lines := range map[string][]string{"policy": j.policy, "sdk": j.sdk} {
		least := map[string]int{"policy": schemas.MaxToolCalls, "sdk": schemas.MaxLogLines}[name]
		if n := size(lines); n > schemas.MaxLogLayer || len(lines) != least || !slices.Contains(j.report.Ambiguities, name+"_log_flooded") {
			t.Errorf("%s layer of %d lines, %d bytes, %q", name, len(lines), n, j.report.Ambiguities[:10])
		}
	}
}

// TestBadDecisionLogs: logs that runner-policy cannot have written.
func TestBadDecisionLogs(t *testing.T) {
	head := "session S 20 30 25\nallow S 0 tc_1 t 100-200 completed /w\n"
	good := string(decisionLog(t, head))
	for _, c := range []struct{ name, log, code string }{
		{"a session twice", good + string(decisionLog(t, "session S 20 30 25")), "4:conflict"},
		{"a session without its start", strings.Join(strings.SplitAfter(good, "\n")[1:], ""), "1:bad_seq"},
		{"a missing line", strings.Replace(good, strings.SplitAfter(good, "\n")[1], "", 1), "2:bad_seq"},
		{"lines swapped", strings.SplitAfter(good, "\n")[0] + strings.SplitAfter(good, "\n")[2], "2:bad_seq"},
		{"an end without a call", string(decisionLog(t, "session S 20 30 25")) + strings.NewReplacer(`"seq":2`, `"seq":1`, `-2"`, `-1"`).Replace(strings.SplitAfter(good, "\n")[2]), "2:conflict"},
		{"a line after its end", string(decisionLog(t, head+"end S\nrefuse S 300")), "5:conflict"},
		{"another count", strings.Replace(string(decisionLog(t, head+"end S")), `"decisions":1`, `"decisions":2`, 1), "4:conflict"},
		{"an id that is not the line's", strings.Replace(good, `-0"`, `-7"`, 1), "1:bad_field"},
		{"an unknown reason", strings.Replace(good, "P_ALLOW_RULE", "P_BECAUSE", 1), "2:bad_field"},
		{"an unknown type", strings.Replace(good, "runner.policy.session_started", "runner.policy.begun", 1), "1:bad_type"},
		{"an unknown key", strings.Replace(good, `"name":`, `"nick":"x","name":`, 1), "1:bad_field"},
		{"a key twice", strings.Replace(good, `"name":`, `"name":"x","name":`, 1), "1:bad_json"},
		{"an end before the start", strings.Replace(good, `"end_ns":200`, `"end_ns":99`, 1), "3:bad_field"},
		{"bad UTF-8", strings.Replace(good, "srv-S", "srv-\xff", 1), "1:bad_json"},
		{"not an object", good + "[]\n", "4:bad_type"},
		{"the same attempt twice", string(decisionLog(t, head)) + strings.NewReplacer(`"seq":1`, `"seq":3`, `-1"`, `-3"`, `"start_ns":100`, `"start_ns":101`).Replace(strings.SplitAfter(good, "\n")[1]), "4:conflict"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := join(t, world{kernel: agent}.stream(t), collect(t, schemas.StreamPolicyLog, []byte(c.log), logHealth{}), nil)
			if !slices.Contains(j.report.Ambiguities, "policy_log_invalid:"+c.code) || j.report.Status != "failed" || j.status != schemas.StatusPartial {
				t.Errorf("%q, %s, sealed %s", j.report.Ambiguities, j.report.Status, j.status)
			}
			line := 0
			fmt.Sscanf(c.code, "%d", &line)
			if n := strings.Count(strings.Join(strings.SplitAfter(c.log, "\n")[:line-1], ""), `"type":"assay.tool.decision"`); n != len(j.policy) {
				t.Errorf("%d decisions in the layer, %d stand before the bad line", len(j.policy), n)
			}
		})
	}
}

// TestOtherFiles: a plain file that is something else by its first line is refused. A log that is cut is not, and neither is
// one that was collected: the measured command could write anything to it.
func TestOtherFiles(t *testing.T) {
	kernel, good := world{kernel: agent}.stream(t), string(decisionLog(t, "session S 20 30 25\nallow S 0 tc_1 t 100-200 completed /w\n"))
	for text, want := range map[string]string{
		"# runner\n\nMeasure\n": "policy:1: this is no decision log: its first line is no valid JSON object, expected a line of the decision log", "x": "no valid JSON object",
		"{\n  \"a\": 1\n}\n": "no valid JSON object", "[]\n": "no valid JSON object", "{}\n": "the type of its first line is absent", `{"type":"x"}`: `the type of its first line is "x"`,
		"schema: runner.policy.v0\n": "no valid JSON object", `{"type":7}` + "\n" + good: "the type of its first line is no text",
		"": "", "\n\n": "", good: "", "\n" + good: "", good[:100]: "", good[:len(good)-9]: "", good + "x\n": "",
	} {
		code, out, msg := call(kernel, logArgs(t, []byte(text), nil)...)
		switch {
		case want == "" && code != tool.ExitOK, want != "" && (code != tool.ExitInput || !strings.Contains(msg, want) || strings.Contains(string(out), schemas.SchemaTrailer)):
			t.Errorf("%q: exit %d: %s", text, code, msg)
		}
		if code, _, msg := call(kernel, logArgs(t, collect(t, schemas.StreamPolicyLog, []byte(text), logHealth{}), nil)...); code != tool.ExitOK {
			t.Errorf("%q, collected: exit %d: %s", text, code, msg)
		}
	}
}

// TestTexts: strings that a client chose are in the layers in text form. They are
// compared with those of the SDK in their original form.
func TestTexts(t *testing.T) {
	policy := strings.ReplaceAll(string(decisionLog(t, strings.Replace(one, "tc_1", "tc_B", 1))), "tc_B", `a\\b:\u0000é`)
	sdk := strings.ReplaceAll(string(sdkEvents(strings.ReplaceAll(oneSDK, "tc_1", "tc_B"))), "tc_B", ` a\\b:\u0000é `)
	j := join(t, world{kernel: strings.ReplaceAll(agent, "\t210 unlink /work/b\n", "")}.stream(t), []byte(policy), []byte(sdk))
	j.want(t, "a\\\\b:\x00é allow 2 tool_server own [failed-read /work/missing, read /work/a]", "")
	if !strings.Contains(j.policy[0], `"tool_call_id":"a\\\\b:\u0000é"`) || !strings.Contains(j.sdk[0], `"tool_call_id":"a\\\\b:\u0000é"`) {
		t.Errorf("%s\n%s", j.policy[0], j.sdk[0])
	}
}

// TestManyProxies interleaves the lines of several proxies at random. Each keeps the
// order of its own lines; the output is always the same.
func TestManyProxies(t *testing.T) {
	kernel := world{kernel: agent + "1 50 40-4000\n 41 exec /bin/runner-policy\n2 60 45-3900\n 46 exec /bin/other\n 120 write /work/c\n 500 read /late\n"}.stream(t)
	var queues [][]string
	for _, log := range []string{one + "\nrefuse S 3000", "session T 50 60 47\nallow T 0 tc_1 w 100-200 completed /work\ndeny T 1 tc_9 rm 210-215 /late\nend T", "session U 50 61 47\nallow U 0 tc_0 w 100-200 completed /work"} {
		log = strings.Replace(log, "end S\nrefuse S 3000", "refuse S 3000\nend S", 1)
		queues = append(queues, strings.SplitAfter(string(decisionLog(t, log)), "\n"))
	}
	rnd := rand.New(rand.NewPCG(9, 9))
	var want []byte
	for range 60 {
		var b strings.Builder
		at := make([]int, len(queues))
		for left := len(queues); left > 0; {
			i := rnd.IntN(len(queues))
			if at[i] == len(queues[i]) {
				continue
			}
			b.WriteString(queues[i][at[i]])
			if at[i]++; at[i] == len(queues[i]) {
				left--
			}
		}
		got := join(t, kernel, []byte(b.String()), nil).out
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("another order of lines gives\n%s\nexpected\n%s", got, want)
		}
	}
}
