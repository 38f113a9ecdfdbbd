package main

import (
	"fmt"
	"strings"

	"github.com/runner-evidence/runner/schemas/bundle"
)

// testDigest is the digest of some policy file.
const testDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// decisionLine is a line of the policy layer as runner-policy's log makes it.
func decisionLine(seq int, id, tool, decision, rest string) string {
	return fmt.Sprintf(`{"schema":"assay.runner.policy_event.v0","run_id":%q,"seq":%d,"source_event_type":"assay.tool.decision","source":"runner-policy","tool_call_id":%q,"tool":%q,"decision":%q,"tool_call_id_source":"callId",%s}`+"\n",
		runID, seq, id, tool, decision, rest)
}

// bindingOf is a binding with a window of its own; rest begins with a comma.
func bindingOf(id, decision string, count int, rest string) string {
	return fmt.Sprintf(`{"tool_call_id":%q,"policy_decision":%q,"kernel_event_count":%d,"window":{"start":"tool_call_started:%s","end":"tool_call_finished:%s"},"kernel_scope":"tool_server"%s}`,
		id, decision, count, id, id, rest)
}

// layered is a valid archive of a run with all three layers and one proxy: a call
// with effects, a denied one whose effects happened all the same, one that never
// ended, and one in two attempts.
func layered() content {
	a := sample()
	read := func(seq int, path, result string) string {
		return kernelLine(seq, `"event_type":1,"kind":"openat","value":"`+path+`","flags":0,"mode":0,`+result)
	}
	const ok, no = `"return_value":3,"access_mode":"read","status":"success"`, `"return_value":-2,"access_mode":"read","status":"error"`
	a[bundle.KernelName] = kernelLine(0, `"event_type":4,"kind":"exec","value":"/usr/bin/sh","return_value":0,"status":"success"`) +
		kernelLine(1, `"event_type":4,"kind":"exec","value":"/usr/bin/files","return_value":0,"status":"success"`) +
		read(2, "/work/a", ok) + read(3, "/work/b", no) + openLine(4, "/work/secret") +
		kernelLine(5, `"event_type":2,"kind":"connect","value":"127.0.0.1:80","return_value":-115`) +
		kernelLine(6, `"event_type":211,"kind":"event_211","value":"/work/tmp","return_value":0,"status":"success"`) +
		kernelLine(7, `"event_type":20,"kind":"connect_blocked","value":"10.0.0.1:443","cgroup_id":9,"network_destination":"10.0.0.1","network_port":443,"rule_id":2,"return_value":-1,"status":"error"`) +
		read(8, "/work/c", ok) +
		kernelLine(9, `"event_type":10,"kind":"file_blocked","value":"/etc/shadow","cgroup_id":9,"rule_id":1`)
	rule := func(reason, rule string) string {
		return `"reason_code":"` + reason + `","rule_id":"` + rule + `","policy_digest":"` + testDigest + `"`
	}
	allow := rule("P_ALLOW_RULE", "read-work")
	a[bundle.PolicyName] = decisionLine(0, "tc_1", "read_file", "allow", `"outcome":"completed",`+allow) +
		decisionLine(1, "tc_2", "write_file", "deny", `"outcome":"denied",`+rule("P_DENY_RULE", "no-write")) +
		decisionLine(2, "tc_3", "read_file", "allow", allow) +
		decisionLine(3, "tc_4", "fetch", "allow", `"outcome":"input_required",`+allow) +
		decisionLine(4, "tc_4", "fetch", "allow", `"outcome":"completed",`+allow+`,"attempt":2`)
	a[bundle.SDKName] = sdkLines("tool_call_started tc_1 read_file", "tool_call_completed tc_1 read_file",
		"tool_call_started tc_2 write_file", "tool_call_started tc_9 shell", "tool_call_completed tc_9 shell", "run_finished")
	a[bundle.SurfaceName] = `{"schema":"assay.runner.capability_surface.v0","run_id":"run_test","filesystem_paths":["/etc/shadow","/work/a","/work/b","/work/c","/work/secret","/work/tmp"],` +
		`"network_endpoints":["10.0.0.1:443","127.0.0.1:80"],"process_execs":["/usr/bin/files","/usr/bin/sh"],"mcp_tools":["fetch","read_file","write_file"],` +
		`"policy_decisions":["allow:fetch","allow:read_file","deny:write_file"]}`
	a[bundle.ReportName] = `{"schema":"assay.runner.correlation_report.v0","run_id":"run_test","status":"partial","bindings":[` + strings.Join([]string{
		bindingOf("tc_1", "allow", 2, `,"kernel_effects":["failed-read /work/b","read /work/a"]`),
		bindingOf("tc_2", "deny", 0, `,"kernel_effects":["write /work/secret"]`),
		`{"tool_call_id":"tc_3","policy_decision":"allow","kernel_event_count":6,"window":{"start":"run_started","end":"run_finished"},"kernel_scope":"tool_server"}`,
		bindingOf("tc_4", "allow", 0, ""), bindingOf("tc_4", "allow", 1, `,"kernel_effects":["connect 127.0.0.1:80"]`)}, ",") +
		`],"ambiguities":["` + strings.Join([]string{"denied_call_with_kernel_effects:tc_2",
		"exec_without_tool_call:/usr/bin/sh", "kernel_events_outside_tool_windows:tc_4", "policy_call_not_in_sdk:tc_3", "policy_call_not_in_sdk:tc_4",
		"sdk_tool_call_without_policy_binding:tc_9", "tool_call_effects_outside_request:tc_1",
		"tool_call_not_finished:tc_3", "tool_call_targets_unknown:tc_4"}, `","`) + `"],"notes":["` +
		strings.Join([]string{"decision_without_kernel_events:tc_4", "sdk_tool_call_failed:tc_2", "server_effect_before_calls:exec /usr/bin/files"}, `","`) + `"]}`
	a[bundle.HealthName] = `{"schema":"assay.runner.observation_health.v0","run_id":"run_test","platform":"linux","kernel_layer":"complete","ringbuf_drops":0,"policy_layer":"present","sdk_layer":"self_reported","cgroup_correlation":"clean","network_protocol_coverage":"connect_only","network_endpoint_claim_scope":"diagnostic_only","notes":[` +
		`"s2_kernel_capture: monitor_events=10 ringbuf_drops=0 network_protocol_coverage=connect_only network_endpoint_claim_scope=diagnostic_only","s2_blind_spots: inherited descriptors (0); shared memory",` +
		`"s4_network_policy: rules=2 blocked=1 policy=` + testDigest + `","s4_file_policy: rules=1 blocked=1 mechanism=lsm evidence=observed policy=` + testDigest + `","s4_policy_capture: decision_events=5 sessions=1 refused=1","s5_sdk_capture: sdk_events=6 sdk_tool_calls=3","s6_windows: call=4 setup=1 idle=1 agent=4"]}`
	return a
}

// foreign is a valid archive of another implementation, under the v0 rules.
func foreign() content {
	a := sample()
	a[bundle.EventsName] = strings.NewReplacer(`"run_started",`, `"run_started","window_elapsed_ms":0,`, `"run_finished",`, `"run_finished","window_elapsed_ms":5,`,
		`"ASSAY_RUNNER_RUN_ID","ASSAY_RUNNER_SDK_EVENT_LOG","ASSAY_RUNNER_SDK_EVENT_SCHEMA"`, `"HOME"`).Replace(a[bundle.EventsName])
	a[bundle.SDKName] = sdkLines("tool_call_started tc_1 other_tool", "tool_call_started tc_2 read_file")
	a[bundle.ReportName] = strings.Replace(a[bundle.ReportName], `"kernel_event_count"`, `"cgroup_id":7,"kernel_event_count"`, 1)
	a[bundle.HealthName] = strings.NewReplacer("sdk_events=5", "sdk_events=2", `"s2_blind_spots: inherited descriptors (0); shared memory",`, "", "decision_events", "policy_events").Replace(a[bundle.HealthName])
	return a
}
