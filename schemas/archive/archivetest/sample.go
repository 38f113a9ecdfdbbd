package archivetest

import "github.com/runner-evidence/runner/schemas"

// Sample is a valid archive with all three layers: four kernel lines, one
// decision, one SDK call that the policy knows and one that it does not.
func Sample() Content {
	a := Content{}
	a[schemas.MemberEvents] = `{"schema":"assay.runner.event.v0","run_id":"run_test","seq":0,"type":"run_started","agent_shim":"openai-agents","command":["./agent.sh","a b"],"env_keys":["ASSAY_RUNNER_RUN_ID","ASSAY_RUNNER_SDK_EVENT_LOG","ASSAY_RUNNER_SDK_EVENT_SCHEMA"]}
{"schema":"assay.runner.event.v0","run_id":"run_test","seq":1,"type":"run_finished","exit_code":0,"signal":null,"success":true}
`
	a[schemas.MemberKernel] = OpenLine(0, "/tmp/out") +
		KernelLine(1, `"event_type":4,"kind":"exec","value":"/usr/bin/env","return_value":0,"status":"success"`) +
		KernelLine(2, `"event_type":2,"kind":"connect","value":"127.0.0.1:80","return_value":-115`) +
		KernelLine(3, `"event_type":211,"kind":"event_211","value":"/tmp/old","return_value":-2,"status":"error"`)
	a[schemas.MemberPolicy] = `{"schema":"assay.runner.policy_event.v0","run_id":"run_test","seq":0,"source_event_type":"assay.tool.decision","source":"proxy","tool_call_id":"tc_1","tool":"read_file","decision":"allow"}
`
	a[schemas.MemberSDK] = SDKLines("tool_call_started tc_1 read_file", "tool_call_completed tc_1 read_file",
		"tool_call_started tc_2 read_file", "tool_call_completed tc_2 read_file", "run_finished")
	a[schemas.MemberSurface] = `{"schema":"assay.runner.capability_surface.v0","run_id":"run_test","filesystem_paths":["/tmp/old","/tmp/out"],"network_endpoints":["127.0.0.1:80"],"process_execs":["/usr/bin/env"],"mcp_tools":["read_file"],"policy_decisions":["allow:read_file"]}`
	a[schemas.MemberReport] = `{"schema":"assay.runner.correlation_report.v0","run_id":"run_test","status":"partial","bindings":[{"tool_call_id":"tc_1","policy_decision":"allow","kernel_event_count":4,"window":{"start":"run_started","end":"run_finished"}}],"ambiguities":["sdk_tool_call_without_policy_binding:tc_2"]}`
	a[schemas.MemberHealth] = `{"schema":"assay.runner.observation_health.v0","run_id":"run_test","platform":"linux","kernel_layer":"complete","ringbuf_drops":0,"policy_layer":"present","sdk_layer":"self_reported","cgroup_correlation":"clean","network_protocol_coverage":"connect_only","network_endpoint_claim_scope":"diagnostic_only","notes":["s2_kernel_capture: monitor_events=4 ringbuf_drops=0 network_protocol_coverage=connect_only network_endpoint_claim_scope=diagnostic_only","s2_blind_spots: inherited descriptors (0); shared memory","s4_policy_capture: decision_events=1","s5_sdk_capture: sdk_events=5 sdk_tool_calls=2"]}`
	return a
}
