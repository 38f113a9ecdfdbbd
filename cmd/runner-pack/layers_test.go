package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/stream"
	"github.com/runner-evidence/runner/schemas/testkit"
)

func decision(seq int, id, decision string) string {
	return fmt.Sprintf(`{"schema":"assay.runner.policy_event.v0","run_id":"run_01","seq":%d,"source_event_type":"assay.tool.decision","source":"runner-policy","tool_call_id":"%s","tool":"read_file","decision":"%s"}`, seq, id, decision)
}

func sdkEvent(seq int, kind, id string) string {
	return fmt.Sprintf(`{"schema":"assay.runner.sdk_event.v0","run_id":"run_01","seq":%d,"event_type":"%s","source":"shim","sdk_name":null,"sdk_version":null,"tool_call_id":"%s","tool":"read_file"}`, seq, kind, id)
}

func bindingLine(id, decision, rest string) string {
	return fmt.Sprintf(`{"schema":"runner.binding.v0","run_id":"run_01","binding":%s}`, bindingObject(id, decision, rest))
}

func bindingObject(id, decision, rest string) string {
	return fmt.Sprintf(`{"tool_call_id":"%s","policy_decision":"%s","kernel_event_count":1,"window":{"start":"tool_call_started:%s","end":"tool_call_finished:%s"}%s}`, id, decision, id, id, rest)
}

func codeLine(code string) string {
	return `{"schema":"runner.ambiguity.v0","run_id":"run_01","code":"` + code + `"}`
}

const effects = `,"kernel_scope":"tool_server","kernel_effects":["read /tmp/\"ÿ"]`

// layered is a stream with all three layers.
func layered() joined {
	j := whole()
	j.policy = []string{decision(0, "tc_1", "allow"), decision(1, "tc_2", "deny")}
	j.sdk = []string{sdkEvent(0, "tool_call_started", "tc_1"), sdkEvent(1, "tool_call_completed", "tc_1")}
	j.entries = append(j.entries, entry("mcp_tools", "read_file"), entry("policy_decisions", "allow:read_file"), entry("policy_decisions", "deny:read_file"))
	j.bindings = []string{bindingLine("tc_1", "allow", effects), bindingLine("tc_2", "deny", "")}
	j.codes = []string{codeLine("policy_call_not_in_sdk:tc_2"), codeLine("sdk_run_not_finished")}
	j.report[0] = strings.Replace(j.report[0], "clean", "partial", 1)
	j.stages[2] = strings.Replace(stage("runner-correlate", 2, 7), `{"surface_entries":7}`,
		`{"policy_events":2,"sdk_events":2,"surface_entries":7}`, 1)
	return j
}

func TestThreeLayers(t *testing.T) {
	j := layered()
	_, tmp := scratch(t)
	code, out, stderr := call(j.build(t), "-o", "-")
	if code != 0 {
		t.Fatal(stderr)
	}
	_, content, _ := unpack(t, []byte(out))
	for member, want := range map[string]string{
		bundle.PolicyName: strings.Join(j.policy, "\n") + "\n",
		bundle.SDKName:    strings.Join(j.sdk, "\n") + "\n",
		bundle.ReportName: `{"schema":"assay.runner.correlation_report.v0","run_id":"run_01","status":"partial","bindings":[` +
			bindingObject("tc_1", "allow", effects) + `,` + bindingObject("tc_2", "deny", "") +
			`],"ambiguities":["policy_call_not_in_sdk:tc_2","sdk_run_not_finished"]}`,
	} {
		if string(content[member]) != want {
			t.Errorf("%s is\n%s\nexpected\n%s", member, content[member], want)
		}
	}
	r, err := schemas.ParseReport(content[bundle.ReportName])
	testkit.Must(t, err)
	if again, err := schemas.Marshal(r); err != nil || string(again) != string(content[bundle.ReportName]) {
		t.Errorf("the report is not in canonical form: %v", err)
	}
	if left := testkit.Names(t, tmp); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// Either part of the report may be missing.
func TestPartsOfTheReport(t *testing.T) {
	j := layered()
	j.codes = nil
	_, out, _ := call(j.build(t), "-o", "-")
	if _, content, _ := unpack(t, []byte(out)); !strings.HasSuffix(string(content[bundle.ReportName]), `}],"ambiguities":[]}`) {
		t.Errorf("no ambiguities: %s", content[bundle.ReportName])
	}
	j = layered()
	j.policy, j.bindings = nil, nil
	j.stages[2] = strings.Replace(j.stages[2], `"policy_events":2,`, ``, 1)
	_, out, _ = call(j.build(t), "-o", "-")
	if _, content, _ := unpack(t, []byte(out)); !strings.HasSuffix(string(content[bundle.ReportName]), `"bindings":[],"ambiguities":["policy_call_not_in_sdk:tc_2","sdk_run_not_finished"]}`) {
		t.Errorf("no bindings: %s", content[bundle.ReportName])
	}
}

func TestLayerRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(j *joined)
		want string
	}{
		{"decision without a binding", func(j *joined) { j.bindings = j.bindings[:1] }, "1 bindings, the policy layer has 2 decisions"},
		{"binding without a decision", func(j *joined) { j.bindings = append(j.bindings, j.bindings[1]) }, "but the policy layer has 2 decisions"},
		{"bindings swapped", func(j *joined) { j.bindings[0], j.bindings[1] = j.bindings[1], j.bindings[0] }, "binding 0 is of another decision"},
		{"binding of another decision", func(j *joined) { j.bindings[1] = bindingLine("tc_2", "allow", "") }, "binding 1 is of another decision"},
		{"binding with null", func(j *joined) { j.bindings[1] = strings.Replace(j.bindings[1], `"deny"`, "null", 1) }, "binding 1 is of another decision"},
		{"binding not canonical", func(j *joined) { j.bindings[1] = strings.Replace(j.bindings[1], `"tc_2"`, `"tc\u005f2"`, 1) }, "canonical"},
		{"binding with unsorted effects", func(j *joined) {
			j.bindings[0] = bindingLine("tc_1", "allow", `,"kernel_scope":"run","kernel_effects":["read /b","read /a"]`)
		}, "not sorted"},
		{"binding after an ambiguity", func(j *joined) { j.codes = append(j.codes, j.bindings[1]) }, " record after "},
		{"ambiguities unsorted", func(j *joined) { j.codes[0], j.codes[1] = j.codes[1], j.codes[0] }, "byte order"},
		{"ambiguity twice", func(j *joined) { j.codes[1] = j.codes[0] }, "byte order"},
		{"ambiguity unknown", func(j *joined) { j.codes[1] = codeLine("x") }, "unknown ambiguity code"},
		{"report with a binding", func(j *joined) {
			j.report[0] = strings.Replace(j.report[0], `"bindings":[]`, `"bindings":[`+bindingObject("tc_1", "allow", "")+`]`, 1)
		}, "expected them before it"},
		{"report with an ambiguity", func(j *joined) {
			j.report[0] = strings.Replace(j.report[0], `"ambiguities":[]`, `"ambiguities":["x"]`, 1)
		}, "expected them before it"},
		{"binding after the report", func(j *joined) { j.report = append(j.report, j.bindings[0]) }, " record after "},
		{"policy seq", func(j *joined) { j.policy[1] = decision(2, "tc_2", "deny") }, "has seq 2, expected 1"},
		{"policy form", func(j *joined) { j.policy[1] = strings.Replace(j.policy[1], `,"tool"`, `, "tool"`, 1) }, "canonical"},
		{"policy key", func(j *joined) { j.policy[1] = strings.Replace(j.policy[1], `,"tool":"read_file"`, ``, 1) }, "key tool is missing"},
		{"sdk seq", func(j *joined) { j.sdk[1] = sdkEvent(0, "tool_call_completed", "tc_1") }, "has seq 0, expected 1"},
		{"sdk form", func(j *joined) { j.sdk[1] = strings.Replace(j.sdk[1], `"sdk_name":null,`, ``, 1) }, "canonical"},
		{"sdk line lost", func(j *joined) { j.sdk = j.sdk[:1] }, "counted 2 sdk_events, the stream has 1"},
		{"decision and binding lost", func(j *joined) { j.policy, j.bindings = j.policy[:1], j.bindings[:1] }, "counted 2 policy_events, the stream has 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := layered()
			c.edit(&j)
			refused(t, j, c.want)
		})
	}
}

func TestEveryPrefixOfLayersRefused(t *testing.T) {
	path, _ := scratch(t)
	in := layered().build(t)
	for n := 0; n < len(in); n += 7 {
		if code, _, stderr := call(in[:n], "-o", path); code != 3 {
			t.Fatalf("prefix of %d bytes: exit %d: %s", n, code, stderr)
		}
	}
}

// writeCalls writes n decisions with the parts of their report.
func writeCalls(w *stream.Writer, n int, between func()) {
	for i := range n {
		w.WriteRaw([]byte(decision(i, fmt.Sprintf("call_%09d", i), "allow")))
	}
	between()
	for i := range n {
		w.WriteRaw([]byte(bindingLine(fmt.Sprintf("call_%09d", i), "allow", effects)))
	}
	for i := range n {
		w.WriteRaw([]byte(codeLine(fmt.Sprintf("tool_call_effects_outside_request:call_%09d", i))))
	}
}
