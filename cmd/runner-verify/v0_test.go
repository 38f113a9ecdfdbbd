package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/bundle"
)

// Archives of other implementations must satisfy the v0 rules, and no others.
func TestForeignMutations(t *testing.T) {
	const policy, sdk, report, health, events = bundle.PolicyName, bundle.SDKName, bundle.ReportName, bundle.HealthName, bundle.EventsName
	for _, tc := range []struct {
		name string
		edit func(t *testing.T, a content)
		want string
	}{
		{"untouched", func(*testing.T, content) {}, ""},
		{"no cgroup", edit(report, `"cgroup_id":7,`, ``), ""},
		{"other environment", edit(events, `["HOME"]`, `["PATH","HOME"]`), ""},
		{"other word for the count", edit(health, `policy_events=1`, `decision_events=1`), ""},
		{"SDK event gone", both(edit(sdk, `"event_type":"tool_call_started","source":"x","sdk_name":null,"sdk_version":null,"tool_call_id":"tc_1"`, `"event_type":"tool_call_completed","source":"y","sdk_name":null,"sdk_version":null,"tool_call_id":"tc_1"`)), ""},
		{"tool not a text", func(t *testing.T, a content) {
			for _, m := range []string{policy, bundle.SurfaceName} {
				a[m] = strings.ReplaceAll(a[m], "read_file", `read\\file`)
			}
		}, ""},
		{"count", edit(report, `"kernel_event_count":4`, `"kernel_event_count":3`), "report.bindings"},
		{"window of a call", both(edit(report, `"run_started"`, `"tool_call_started:tc_1"`), edit(report, `"run_finished"`, `"tool_call_finished:tc_1"`)), "report.bindings"},
		{"scope", edit(report, `"end":"run_finished"}`, `"end":"run_finished"},"kernel_scope":"run"`), "report.bindings"},
		{"effects", edit(report, `"end":"run_finished"}`, `"end":"run_finished"},"kernel_effects":["exec /usr/bin/env"]`), "report.bindings"},
		{"code of this runner", edit(report, `["sdk_tool`, `["kernel_events_lost","sdk_tool`), "report.ambiguities"},
		{"code left out", both(edit(report, `"sdk_tool_call_without_policy_binding:tc_2"`, ``), edit(report, `"partial"`, `"clean"`)), "report.ambiguities"},
		{"failed", edit(report, `"partial"`, `"failed"`), "report.status"},
		{"outcome", edit(policy, `"decision":"allow"`, `"decision":"allow","outcome":"completed"`), "line.schema"},
		{"sdk raised", edit(health, `"self_reported"`, `"present"`), "health.layer"},
		{"policy count", edit(health, `policy_events=1`, `policy_events=2`), "health.note"},
		{"coverage", both(edit(health, `coverage":"connect_only"`, `coverage":"datagram_peer_observed"`), edit(health, `coverage=connect_only`, `coverage=datagram_peer_observed`)), "health.network"},
		{"operations", edit(bundle.KernelName, `["create","truncate"]`, `["create"]`), "kernel.derived"},
		{"drops in a complete layer", both(edit(health, `"ringbuf_drops":0`, `"ringbuf_drops":1`), edit(health, `ringbuf_drops=0`, `ringbuf_drops=1`)), "health.drops"},
		{"times in another order of keys", func(_ *testing.T, a content) {
			a["layers/times.ndjson"] = `{"schema":"assay.runner.time.v0","seq":0,"run_id":"run_test","type":"anchor","clock":"CLOCK_MONOTONIC","wall_clock":"CLOCK_REALTIME","wall_ns":1700000000000000000,"finished_ns":900}` + "\n"
		}, "line.form times.note"},
		{"policy layer emptied", func(_ *testing.T, a content) { a[policy] = "" }, "health.layer health.note report.ambiguities report.bindings surface.derived"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := foreign()
			tc.edit(t, a)
			_, r := check(t, a.digest(t).tar(t))
			want := strings.Fields(tc.want)
			slices.Sort(want)
			if got := rules(r); !slices.Equal(got, want) {
				t.Errorf("rules %v, expected %v\n%+v", got, want, r.Findings)
			}
		})
	}
}
