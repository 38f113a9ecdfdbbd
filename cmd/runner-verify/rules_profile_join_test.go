package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// sdkCallLine is a line of the SDK layer about a call with arguments of this digest.
func sdkCallLine(seq int, event, id, tool, digest string) string {
	if digest != "" {
		digest = `,"arguments_digest":"` + digest + `"`
	}
	return fmt.Sprintf(`{"schema":"assay.runner.sdk_event.v0","run_id":%q,"seq":%d,"event_type":%q,"source":"openai-agents","sdk_name":null,"sdk_version":null,"tool_call_id":%q,"tool":%q%s}`+"\n", runID, seq, event, id, tool, digest)
}

// joined is layered, where the SDK's call c3 was found by its arguments: it is the decision tc_3.
func joined() content {
	a := layered()
	a[bundle.SDKName] += sdkCallLine(6, "tool_call_started", "c3", "fs_read_file", testDigest) + sdkCallLine(7, "tool_call_completed", "c3", "fs_read_file", "")
	lines := strings.SplitAfter(a[bundle.PolicyName], "\n")
	lines[2] = strings.Replace(strings.Replace(lines[2], `"callId"`, `"jsonrpc_id"`, 1), "}\n", `,"arguments_digest":"`+testDigest+`"}`+"\n", 1)
	a[bundle.PolicyName] = strings.Join(lines, "")
	a[bundle.ReportName] = strings.NewReplacer(`"kernel_event_count":6,"window":{"start":"run_started","end":"run_finished"},"kernel_scope":"tool_server"}`,
		`"kernel_event_count":6,"window":{"start":"run_started","end":"run_finished"},"kernel_scope":"tool_server","join":"argument_digest","sdk_tool_call_id":"c3"}`,
		`"policy_call_not_in_sdk:tc_3",`, ``, `"server_effect_before_calls:`, `"sdk_tool_name_prefixed:c3","server_effect_before_calls:`).Replace(a[bundle.ReportName])
	a[bundle.HealthName] = strings.NewReplacer("sdk_events=6 sdk_tool_calls=3", "sdk_events=8 sdk_tool_calls=4").Replace(a[bundle.HealthName])
	return a
}

// TestJoins: a join that the layers do not allow is refused.
func TestJoins(t *testing.T) {
	if code, r := check(t, joined().digest(t).tar(t), "--explain"); code != 1 { // tc_1 has no prefix, and there is one session
		t.Errorf("exit %d, %v", code, r.Findings)
	}
	plain := func() content {
		a := joined()
		a[bundle.SDKName] = strings.ReplaceAll(a[bundle.SDKName], "fs_read_file", "read_file")
		a[bundle.ReportName] = strings.Replace(a[bundle.ReportName], `"sdk_tool_name_prefixed:c3",`, "", 1)
		return a
	}
	code, r := check(t, plain().digest(t).tar(t), "--explain")
	if code != 0 {
		t.Fatalf("exit %d, %v", code, r.Findings)
	}
	if c := r.Explanation.Calls[2]; c.SDKCallID != "c3" || c.SDK == nil || c.SDK.Completed != 1 || len(r.Explanation.Calls) != 6 {
		t.Errorf("%+v", c)
	}
	other := "sha256:" + strings.Repeat("0", 64)
	more := func(lines ...string) func(content) {
		return func(a content) {
			a[bundle.SDKName] += strings.Join(lines, "")
			a[bundle.HealthName] = strings.NewReplacer("sdk_events=8 sdk_tool_calls=4", "sdk_events=9 sdk_tool_calls=5").Replace(a[bundle.HealthName])
			a[bundle.ReportName] = strings.Replace(a[bundle.ReportName], `"sdk_tool_call_without_policy_binding:tc_9"`, `"sdk_tool_call_not_completed:c4","sdk_tool_call_without_policy_binding:c4","sdk_tool_call_without_policy_binding:tc_9"`, 1)
		}
	}
	swap := func(member, old, fresh string) func(content) {
		return func(a content) {
			if !strings.Contains(a[member], old) {
				t.Fatalf("%s has no %s", member, old)
			}
			a[member] = strings.Replace(a[member], old, fresh, 1)
		}
	}
	for name, change := range map[string]func(content){
		"another digest in the policy layer": swap(bundle.PolicyName, `"arguments_digest":"`+testDigest, `"arguments_digest":"`+other),
		"no digest in the policy layer":      swap(bundle.PolicyName, `,"arguments_digest":"`+testDigest+`"`, ``),
		"an id of the client":                swap(bundle.PolicyName, `"jsonrpc_id"`, `"callId"`),
		"no join":                            swap(bundle.ReportName, `,"join":"argument_digest","sdk_tool_call_id":"c3"`, ``),
		"an unknown call":                    swap(bundle.ReportName, `"sdk_tool_call_id":"c3"`, `"sdk_tool_call_id":"c5"`),
		"a call of another decision":         swap(bundle.ReportName, `"sdk_tool_call_id":"c3"`, `"sdk_tool_call_id":"tc_1"`),
		"another call with the digest":       more(sdkCallLine(8, "tool_call_started", "c4", "read_file", testDigest)),
		"the code of a call that is joined":  swap(bundle.ReportName, `"policy_call_not_in_sdk:tc_4"`, `"policy_call_not_in_sdk:tc_3","policy_call_not_in_sdk:tc_4"`),
	} {
		t.Run(name, func(t *testing.T) {
			a := plain()
			change(a)
			code, r := check(t, a.digest(t).tar(t))
			if got := rules(r); code != 1 || !slices.Contains(got, ruleReportBindings) && !slices.Contains(got, ruleReportAmbiguity) {
				t.Errorf("exit %d, %v", code, r.Findings)
			}
		})
	}
	// Other implementations have no such digests.
	v0 := foreign()
	v0[bundle.SDKName] = strings.Replace(v0[bundle.SDKName], "}\n", `,"arguments_digest":"`+testDigest+`"}`+"\n", 1)
	if code, r := check(t, v0.digest(t).tar(t)); code != 1 || !slices.Contains(rules(r), archive.RuleLineSchema) {
		t.Errorf("exit %d, %v", code, r.Findings)
	}
	// Another call of another tool may have the same arguments.
	a := plain()
	more(sdkCallLine(8, "tool_call_started", "c4", "echo", testDigest))(a)
	if code, r := check(t, a.digest(t).tar(t)); code != 0 {
		t.Errorf("exit %d, %v", code, r.Findings)
	}
}
