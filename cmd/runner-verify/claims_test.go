package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// wholeRun is a binding without a window of its own, and ownWindow one that has it.
const wholeRun = `{"tool_call_id":"tc_1","policy_decision":"allow","kernel_event_count":0,"window":{"start":"run_started","end":"run_finished"}}`

var ownWindow = strings.Replace(bindingOf("tc_1", "allow", 0, ""), `"kernel_scope":"tool_server"`, `"kernel_scope":"run"`, 1)

// withoutKernel is a as a run without kernel capture gives it, with the one binding
// of its report.
func withoutKernel(a content, binding string) content {
	a[bundle.KernelName] = ""
	health := strings.NewReplacer(`"kernel_layer":"complete"`, `"kernel_layer":"absent"`, `"cgroup_correlation":"clean"`, `"cgroup_correlation":"partial"`,
		`"network_protocol_coverage":"connect_only","network_endpoint_claim_scope":"diagnostic_only"`, `"network_protocol_coverage":"absent","network_endpoint_claim_scope":"not_applicable"`).Replace(a[bundle.HealthName])
	head, notes, _ := strings.Cut(health, `"notes":[`)
	_, notes, _ = strings.Cut(notes, `"s2_blind_spots: inherited descriptors (0); shared memory",`)
	a[bundle.HealthName] = head + `"notes":["contract_only_mode: kernel capture was not requested",` + notes
	a[bundle.SurfaceName] = strings.NewReplacer(`["/tmp/old","/tmp/out"]`, "[]", `["127.0.0.1:80"]`, "[]", `["/usr/bin/env"]`, "[]").Replace(a[bundle.SurfaceName])
	a[bundle.ReportName] = `{"schema":"assay.runner.correlation_report.v0","run_id":"run_test","status":"partial","bindings":[` + binding +
		`],"ambiguities":["policy_events_without_kernel_events","sdk_tool_call_without_policy_binding:tc_2"]}`
	return a
}

// withSession gives the one decision of a times and a proxy's session.
func withSession(a content) content {
	a[bundle.PolicyName] = decisionLine(0, "tc_1", "read_file", "allow", `"outcome":"completed","reason_code":"P_ALLOW_DEFAULT","policy_digest":"`+testDigest+`"`)
	a[bundle.HealthName] = strings.NewReplacer(`decision_events=1"`, `decision_events=1 sessions=1 refused=0"`,
		`sdk_tool_calls=2"`, `sdk_tool_calls=2","s6_windows: call=0 setup=0 idle=0 agent=0"`).Replace(a[bundle.HealthName])
	return a
}

// withoutPolicy takes the policy layer of sample out: only the SDK reports its calls.
func withoutPolicy(a content) content {
	a[bundle.PolicyName] = ""
	a[bundle.HealthName] = strings.NewReplacer(`"policy_layer":"present"`, `"policy_layer":"absent"`, `"s4_policy_capture: decision_events=1",`, "").Replace(a[bundle.HealthName])
	a[bundle.SurfaceName] = strings.NewReplacer(`["read_file"]`, "[]", `["allow:read_file"]`, "[]").Replace(a[bundle.SurfaceName])
	a[bundle.ReportName] = large(1, 1)[bundle.ReportName]
	return a
}

// A record claims of its calls what its layers hold, and never more.
func TestAllowedClaim(t *testing.T) {
	one := large(1, 1)
	for _, tc := range []struct {
		name    string
		a       content
		claim   string
		claims  []string // among the claims
		explain []string // among the lines of --explain
	}{
		{"full", layered(), verdict.FullClaim, []string{
			"10 kernel events were observed inside the measured cgroup between run_started and run_finished, and no loss was counted",
			`tool call "tc_4" occurred in the window tool_call_started:tc_4 to tool_call_finished:tc_4, policy saw it (allow), and 1 kernel event of the tool server's processes was observed inside the measured cgroup during it`,
			`tool call "tc_3" occurred in the window run_started to run_finished (the whole run), policy saw it (allow), and 6 kernel events of the tool server's processes were observed inside the measured cgroup during it; which of them are the call's is not known`,
		}, []string{"All kernel events:"}},
		{"kernel absent", withoutKernel(sample(), wholeRun), verdict.PolicyClaim, []string{
			`tool call "tc_1" occurred in the window run_started to run_finished (the whole run), and policy saw it (allow)`,
		}, []string{"  kernel  no kernel layer: nothing is known of its window, which is the whole run"}},
		{"kernel absent, windows known", withoutKernel(withSession(sample()), ownWindow), verdict.PolicyClaim, []string{
			`tool call "tc_1" occurred in the window tool_call_started:tc_1 to tool_call_finished:tc_1, and policy saw it (allow)`,
		}, []string{"  kernel  no kernel layer: nothing is known of its window, tool_call_started:tc_1 to tool_call_finished:tc_1"}},
		{"SDK only", withoutPolicy(sample()), "", []string{"the agent's SDK reported 5 events about itself"},
			[]string{"  policy  no policy layer", "  kernel  has no window for it: its events cannot be separated from others"}},
		{"no calls", one, "", []string{"1 kernel event was observed inside the measured cgroup between run_started and run_finished, and no loss was counted"},
			[]string{"No tool call: neither the policy nor the SDK reports one."}},
		{"another implementation", foreign(), verdict.FullClaim, []string{
			`tool call "tc_1" occurred in the window run_started to run_finished (the whole run), policy saw it (allow), and 4 kernel events of all processes were observed inside the measured cgroup during it; which of them are the call's is not known`,
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := tc.a.digest(t).tar(t)
			code, r := check(t, in, "--explain")
			if code != 0 {
				t.Fatalf("exit %d, %+v", code, r.Findings)
			}
			if r.Explanation.AllowedClaim != tc.claim || r.Explanation.ForbiddenClaim != verdict.ForbiddenClaim {
				t.Errorf("%+v", r.Explanation)
			}
			_, raw, _ := call(in, "--json", "--explain")
			if strings.Contains(raw, `"allowed_claim"`) != (tc.claim != "") {
				t.Errorf("allowed_claim in %s", raw)
			}
			for _, want := range tc.claims {
				if !slices.Contains(r.Claims, want) {
					t.Errorf("no claim %q among\n%s", want, strings.Join(r.Claims, "\n"))
				}
			}
			_, summary, _ := call(in, "-v")
			_, explained, _ := call(in, "--explain")
			for _, out := range []string{summary, explained} {
				if !strings.Contains(out, verdict.ForbiddenClaim+"\n") {
					t.Errorf("what is never claimed is not said:\n%s", out)
				}
				for _, claim := range []string{verdict.FullClaim, verdict.PolicyClaim} {
					if strings.Contains(out, claim) != (claim == tc.claim) {
						t.Errorf("expected only the claim %q:\n%s", tc.claim, out)
					}
				}
			}
			want := "This is claimed about each tool call that the policy decided:\n  " + tc.claim + "\n"
			if tc.claim == "" {
				want = "This is claimed about each tool call"
			}
			if strings.Contains(explained, want) != (tc.claim != "") {
				t.Errorf("%q:\n%s", want, explained)
			}
			for _, line := range tc.explain {
				if !strings.Contains(explained, "\n"+line+"\n") {
					t.Errorf("no line %q:\n%s", line, explained)
				}
			}
			if strings.Contains(explained, "All kernel events:") != (tc.name == "full") {
				t.Errorf("classes of kernel events:\n%s", explained)
			}
			if tc.claim != verdict.FullClaim && strings.Contains(strings.Join(r.Claims, "\n"), "during it") {
				t.Errorf("kernel events of calls in %q", r.Claims)
			}
		})
	}
}

// A record of many calls spells out the first ones.
func TestManyClaims(t *testing.T) {
	const spelledOut = 20
	a := manyCalls(spelledOut + 1)
	if _, r := check(t, a.digest(t).tar(t)); !slices.Contains(r.Claims, "the same of 1 more tool call") {
		t.Errorf("%q", r.Claims)
	}
	if code, out, _ := call(layeredOnce().digest(t).tar(t), "--explain"); code != 0 || !strings.Contains(out, "All kernel events:\n  1 kernel event in windows of calls, 0 before") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// layeredOnce is a valid archive of one call with one kernel event and no other.
func layeredOnce() content {
	a := manyCalls(1)
	a[bundle.ReportName] = strings.NewReplacer(`"kernel_event_count":0`, `"kernel_event_count":1`, `"kernel_scope":"tool_server"`, `"kernel_scope":"tool_server","kernel_effects":["write `+path(0)+`"]`,
		`,"notes":["decision_without_kernel_events:call_000000000"]`, ``).Replace(a[bundle.ReportName])
	a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], "call=0 setup=1", "call=1 setup=0", 1)
	return a
}
