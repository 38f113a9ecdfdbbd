package main

import (
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/assertion"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// unobserved is a record without kernel and policy layers.
func unobserved() content {
	a := sample()
	a[bundle.EventsName] = strings.NewReplacer("openai-agents", "none", `"ASSAY_RUNNER_RUN_ID","ASSAY_RUNNER_SDK_EVENT_LOG","ASSAY_RUNNER_SDK_EVENT_SCHEMA"`, "").Replace(a[bundle.EventsName])
	a[bundle.KernelName], a[bundle.PolicyName], a[bundle.SDKName] = "", "", ""
	a[bundle.SurfaceName] = `{"schema":"assay.runner.capability_surface.v0","run_id":"run_test","filesystem_paths":[],"network_endpoints":[],"process_execs":[],"mcp_tools":[],"policy_decisions":[]}`
	a[bundle.ReportName] = `{"schema":"assay.runner.correlation_report.v0","run_id":"run_test","status":"clean","bindings":[],"ambiguities":[]}`
	a[bundle.HealthName] = `{"schema":"assay.runner.observation_health.v0","run_id":"run_test","platform":"linux","kernel_layer":"absent","ringbuf_drops":0,"policy_layer":"absent","sdk_layer":"absent","cgroup_correlation":"partial","network_protocol_coverage":"absent","network_endpoint_claim_scope":"not_applicable","notes":["` +
		schemas.NoteContractOnly.Format(schemas.ContractOnlyNotRequested) + `"]}`
	return a
}

// TestNotObserved: a demand is not met by what nobody looked at, and the message says which layer
// is missing and what to type.
func TestNotObserved(t *testing.T) {
	in := unobserved().digest(t).tar(t)
	const kernel, policy = "the record has no kernel layer", "the record has no policy layer"
	for _, c := range []struct{ flag, value, says string }{
		{"--require", "kernel=absent,policy=absent,cgroup=partial,success=true,correlation=clean", ""},
		{"--require", "drops=0", kernel}, {"--require", "events>0", kernel}, {"--require", "network=absent", kernel}, {"--require", "drops=5", "sudo runner-exec"},
		{"--assert", ".surface.network_endpoints == []", kernel}, {"--assert", ".surface.process_execs | length == 0", kernel},
		{"--assert", "all(.surface.filesystem_paths[]; startswith(\"/tmp\"))", kernel}, {"--assert", ".health.ringbuf_drops == 0", kernel},
		{"--assert", ".surface.mcp_tools == []", policy}, {"--assert", `[.surface[] | arrays[]] | length == 0`, ""},
		{"--assert", `.surface.network_endpoints | index("10.0.0.1:80") | not`, kernel},
		{"--assert", `.health.kernel_layer == "absent" and .run.success`, ""},
		{"--assert", `all(.kernel[]; .value != "/etc/shadow")`, kernel}, {"--assert", ".processes | length == 0", kernel},
		{"--assert", ".policy == []", policy}, {"--assert", "all(.sdk[]; .tool == 1)", "the record has no sdk layer"},
	} {
		code, r := check(t, in, c.flag, c.value)
		if !r.Valid || (code == 0) != (c.says == "") {
			t.Errorf("%s %s: exit %d, %+v", c.flag, c.value, code, r.Findings)
		} else if c.says != "" && !strings.Contains(r.Findings[0].Message, c.says) {
			t.Errorf("%s %s: %s", c.flag, c.value, r.Findings[0].Message)
		}
	}
	if why, _ := assertion.Blind(&verdict.Record{KernelLayer: schemas.LayerComplete, PolicyLayer: schemas.LayerPresent}).Missing("success"); !strings.Contains(why, "the end of the command") {
		t.Error(why)
	}
}
