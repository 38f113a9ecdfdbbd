package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// one is a session with one call, without any ambiguity.
const one = `
session S 20 30 25
allow S 0 tc_1 read_file 100-200 completed /work
end S`

const oneSDK = "started tc_1 read_file\ncompleted tc_1 read_file\nfinished\n"

// codeCase is a minimal world that must give a code.
type codeCase struct {
	code string
	world
}

func logCodeCases() (list []codeCase) {
	fact := func(name, value string) *logHealth { return &logHealth{facts: map[string]string{name: value}} }
	for _, c := range []struct {
		code string
		h    *logHealth
	}{
		{"flooded", fact("stopped", "too_many_bytes")}, {"replaced", fact("replaced", "yes")}, {"truncated", fact("unterminated", "yes")},
		{"writer_open_at_end", fact("writers_at_end", "open")}, {"written_after_end", &logHealth{counters: map[string]uint64{"after_end_bytes": 7}}},
	} {
		list = append(list,
			codeCase{code: "policy_log_" + c.code, world: world{kernel: agent, policy: one, policyLog: c.h}},
			codeCase{code: "sdk_log_" + c.code, world: world{kernel: agent, sdk: oneSDK, sdkLog: c.h}},
			codeCase{code: "intents_log_" + c.code, world: world{kernel: agent, intents: oneIntent, intentLog: c.h}})
	}
	for why, line := range map[string]string{
		"bad_json":  `{"type"`,
		"bad_type":  `{"specversion":"1.0","id":"x","type":"other","source":"y","data":{}}`,
		"bad_field": `{"type":"assay.tool.decision","source":"y","data":{"tool":"t","decision":"allow"}}`,
		"bad_seq":   "refuse T 5",
		"conflict":  "end S",
	} {
		list = append(list, codeCase{"policy_log_invalid:5:" + why, world{kernel: agent, policy: one + "\n" + line}})
	}
	sdk := func(more string) string {
		return fmt.Sprintf(`{"schema":"assay.runner.sdk_event.v0","run_id":%q,%s}`, testRun, more)
	}
	for why, line := range map[string]string{
		"bad_json":       `{`,
		"bad_schema":     `{"schema":"assay.runner.sdk_event.v1"}`,
		"bad_run_id":     `{"schema":"assay.runner.sdk_event.v0","run_id":"run_02"}`,
		"bad_seq":        sdk(`"seq":5,"event_type":"run_finished","source":"x"`),
		"bad_event_type": sdk(`"seq":3,"event_type":"tool_call_failed","source":"x"`),
		"bad_field":      sdk(`"seq":3,"event_type":"tool_call_started","source":"x","tool":"t"`),
	} {
		list = append(list, codeCase{code: "sdk_log_invalid:4:" + why, world: world{kernel: agent, sdk: oneSDK + line}})
	}
	for why, line := range badIntents {
		list = append(list, codeCase{code: "intents_log_invalid:2:" + why, world: world{kernel: agent, intents: oneIntent + line + "\n" + intentLine(1, "a.b", "{}", "")}})
	}
	return list
}

var codeCases = []codeCase{
	{code: "cgroup_correlation_failed", world: world{kernel: agent, policy: one, capture: input{counters: map[string]uint64{"escapes": 1}}}},
	{code: "connect_without_exchange:198.18.0.9:80", world: world{kernel: "0 40 0-100\n 5 connect 198.18.0.9:80", record: map[string][]any{schemas.StreamNet: {testNet(0, 80)}}}},
	{code: "exchange_without_connect:198.18.0.9:80", world: world{kernel: "0 40 0-100\n 5 connect 198.18.0.8:80", record: testNetwork([]string{"198.18.0.8", "198.18.0.9"})}},
	{code: "names_without_question", world: world{kernel: "0 40 0-100\n 5 connect 198.18.0.8:54", record: testNetwork(nil, "a.test")}},
	{code: "wrapper_record_partial:runner-net", world: world{kernel: agent, record: map[string][]any{schemas.StreamNet: {testNet(1, 80)}}}},
	{code: "wrapper_record_partial:runner-clock", world: world{kernel: agent, record: map[string][]any{schemas.StreamClock: {schemas.Clock{Schema: schemas.SchemaClock, RunID: testRun, Seed: "1", Start: "2026-01-01T00:00:00Z", Runtimes: []string{"node"}, Crypto: schemas.CryptoSeed, Bad: 1}}}}},
	{code: "decision_without_kernel_events:tc_1", world: world{kernel: agent, policy: strings.Replace(one, "100-200", "111-140", 1)}},
	{code: "denied_call_with_kernel_effects:tc_1", world: world{kernel: agent, policy: `
		session S 20 30 25
		deny S 0 tc_1 read_file 100-105 /work/a
		end S`}},
	{code: "exec_without_tool_call:/bin/tar", world: world{kernel: agent + "1 40 300-400\n 301 exec /bin/tar", policy: one}},
	{code: "kernel_events_lost", world: world{kernel: agent, policy: one, capture: input{counters: map[string]uint64{"dropped": 1}}}},
	{code: "kernel_events_outside_tool_windows:tc_1", world: world{kernel: agent, policy: one}},
	{code: "kernel_times_unknown", world: world{kernel: agent, policy: one, untimed: true}},
	{code: "policy_call_not_in_sdk:tc_1", world: world{kernel: agent, policy: one, sdk: "finished"}},
	{code: "policy_events_without_kernel_events", world: world{policy: one}},
	{code: "policy_log_empty", world: world{kernel: agent, policy: "\n \n"}},
	{code: "policy_log_empty", world: world{kernel: agent, policyLog: &logHealth{facts: map[string]string{"writers_at_end": "open"}}}},
	{code: "policy_log_empty", world: world{kernel: agent, policyLog: &logHealth{facts: map[string]string{"writers_at_end": "unknown"}}}},
	{code: "policy_log_empty", world: world{kernel: agent, policyLog: &logHealth{counters: map[string]uint64{"bytes": 1}}}},
	{code: "policy_log_empty", world: world{kernel: agent, sdk: oneSDK, policyLog: &logHealth{}}},
	{code: "policy_log_unused", world: world{kernel: agent, sdk: "finished", policyLog: &logHealth{}}},
	{code: "policy_session_not_finished:srv-S", world: world{kernel: agent, policy: strings.TrimSuffix(one, "end S")}},
	{code: "policy_session_of_other_policy:srv-S", world: world{kernel: agent, policy: one, policyLog: &logHealth{facts: map[string]string{"policy_digest": digestB}}}},
	{code: "policy_session_of_other_policy:srv-S", world: world{kernel: agent, policy: strings.Replace(one, "end S", "reload S\nend S", 1), policyLog: &logHealth{facts: map[string]string{"policy_digest": digestA}}}},
	{code: "policy_session_reloaded:srv-S", world: world{kernel: agent, policy: strings.Replace(one, "allow S", "reload S\nallow S", 1)}},
	{code: "effect_on_denied_target:/srv", world: world{kernel: agent, policy: strings.Replace(one, "end S", "reload S /srv\nend S", 1)}},
	{code: "sdk_completed_denied_call:tc_1", world: world{kernel: agent, sdk: oneSDK, policy: `
		session S 20 30 25
		deny S 0 tc_1 read_file 100-105 /work/z`}},
	{code: "sdk_log_empty", world: world{kernel: agent, sdk: "\n"}},
	{code: "sdk_run_not_finished", world: world{kernel: agent, sdk: "started a b"}},
	{code: "sdk_tool_call_not_completed:a", world: world{kernel: agent, sdk: "started a b"}},
	{code: "sdk_tool_call_not_started:a", world: world{kernel: agent, sdk: "completed a b"}},
	{code: "sdk_tool_call_repeated:a", world: world{kernel: agent, sdk: "started a b\nstarted a b"}},
	{code: "sdk_tool_call_without_policy_binding:tc_2", world: world{kernel: agent, policy: one, sdk: "started tc_2 read_file"}},
	{code: "sdk_tool_name_differs:tc_1", world: world{kernel: agent, policy: one, sdk: "started tc_1 write_file"}},
	{code: "session_cgroup_ambiguous_for_multiple_policy_events", world: world{kernel: agent, policy: "foreign a t allow\nforeign b t deny"}},
	{code: "tool_call_effects_outside_request:tc_1", world: world{kernel: agent, policy: strings.Replace(one, "/work", "/other", 1)}},
	{code: "tool_call_id_repeated:tc_1", world: world{kernel: agent, policy: strings.TrimSuffix(one, "end S") + "allow S 1 tc_1 read_file 300-400 completed /work"}},
	{code: "tool_call_not_finished:tc_1", world: world{kernel: agent, policy: "session S 20 30 25\nallow S 0 tc_1 read_file 100- /work"}},
	{code: "tool_call_targets_unknown:tc_1", world: world{kernel: agent, policy: strings.Replace(one, "/work", "/other …", 1)}},
	{code: "tool_call_targets_unknown:tc_1", world: world{kernel: agent, policy: "session S 20 30 25\ndeny S 0 tc_1 echo 100-105 /other …\nend S"}},
	{code: "tool_calls_overlap:tc_2", world: world{kernel: agent, policy: strings.TrimSuffix(one, "end S") + "allow S 1 tc_2 read_file 150-300 completed /work"}},
	{code: "tool_call_names_nothing:tc_1", world: world{kernel: agent, policy: strings.Replace(one, "/work", "", 1)}},
	{code: "tool_call_cancelled:tc_1", world: world{kernel: agent, policy: strings.Replace(one, "completed", "cancelled", 1)}},
	{code: "tool_call_effects_late:tc_1", world: world{kernel: agent, policy: strings.TrimSuffix(one, "end S") + "allow S 1 tc_2 read_file 205-300 completed /other"}},
	{code: "tool_call_effects_shared:tc_2", world: world{kernel: agent, policy: strings.TrimSuffix(one, "end S") + "allow S 1 tc_2 read_file 205-300 completed /"}},
	{code: "denied_call_not_watched:tc_1", world: world{kernel: agent, policy: "session S 20 30 25\ndeny S 0 tc_1 echo 100-105\nend S"}},
	{code: "effect_on_denied_target:/srv", world: world{kernel: agent, policy: strings.Replace(one, "30 25", "30 25 /srv", 1)}},
	{code: "exec_before_sessions:/bin/env", world: world{kernel: agent + "1 40 3-4\n 4 exec /bin/env", policy: one}},
	{code: "request_effects_outside_request:resources/read", world: world{kernel: agent, policy: strings.Replace(one[:len(one)-len("end S")], "/work", "/work/a", 1) + "request S 0 resources/read 205-300 /other\nend S"}},
	{code: "server_effect_in_requests:unlink /work/b", world: world{kernel: agent, policy: one[:len(one)-len("end S")] + "request S 0 ping 205-300\nend S"}},
	{code: "server_effect_before_calls:read /srv/config", world: world{kernel: agent, policy: one}},
	{code: "server_effect_between_calls:unlink /work/b", world: world{kernel: agent, policy: one}},
	{code: "sdk_tool_call_failed:tc_1", world: world{kernel: agent, policy: strings.Replace(one, "completed", "tool_error", 1), sdk: "started tc_1 read_file"}},
	{code: "sdk_tool_name_prefixed:tc_1", world: world{kernel: agent, policy: one, sdk: "started tc_1 fs_read_file"}},
	{code: "tool_server_elsewhere:srv-S", world: world{kernel: agent, policy: strings.Replace(one, "20 30 25", "20 0 25", 1)}},
	{code: "tool_server_unknown:srv-S", world: world{kernel: agent, policy: strings.Replace(one, "20 30 25", "20 31 25", 1)}},
}

// testNet is the document of a network.
func testNet(lost uint64, ports ...uint16) *schemas.Net {
	return &schemas.Net{Schema: schemas.SchemaNet, RunID: testRun, Mode: schemas.NetModeDeny, Ports: ports, Headers: []string{}, NamesLost: lost}
}

// testNetwork is the record of a network with exchanges that were refused, at port 80 of these addresses, and questions about names.
func testNetwork(addresses []string, names ...string) map[string][]any {
	var list []any
	for i, a := range addresses {
		list = append(list, &schemas.NetExchange{Schema: schemas.SchemaNetExchange, RunID: testRun, Seq: uint64(i), Decision: schemas.NetDeny, Scheme: schemas.NetTCP, Host: a, Port: 80, Address: a, Failure: schemas.NetSilent})
	}
	for i, name := range names {
		list = append(list, &schemas.NetName{Schema: schemas.SchemaNetName, RunID: testRun, Seq: uint64(i), Name: name, Type: "AAAA"})
	}
	n := testNet(0, 80)
	n.Exchanges, n.Names = uint64(len(addresses)), uint64(len(names))
	return map[string][]any{schemas.StreamNet: append(list, n)}
}

// TestEveryCode: for each kind of the table, and each of its reasons, there is a world
// that gives it, and the status of the report follows from the table.
func TestEveryCode(t *testing.T) {
	given := map[string]bool{}
	for _, c := range slices.Concat(codeCases, logCodeCases()) {
		t.Run(c.code, func(t *testing.T) {
			j := c.run(t)
			if !slices.Contains(j.all(), c.code) {
				t.Fatalf("codes %q", j.all())
			}
			if want := schemas.WorstOf(j.report.Ambiguities); j.report.Status != want {
				t.Errorf("status %s, expected %s", j.report.Status, want)
			}
			a, err := schemas.ParseCode(c.code)
			testkit.Must(t, err)
			given[a.Code+":"+a.Why] = true
		})
	}
	for _, k := range schemas.Ambiguities() {
		whys := k.Whys
		if whys == nil {
			whys = []string{""}
		}
		for _, why := range whys {
			if !given[k.Code+":"+why] {
				t.Errorf("no world gives %s %s", k.Code, why)
			}
		}
	}
}

// TestNoCodeWithoutCause: a run without a fault has no code.
func TestNoCodeWithoutCause(t *testing.T) {
	quiet := strings.ReplaceAll(agent, "\t210 unlink /work/b\n", "")
	for name, w := range map[string]world{
		"only kernel":          {kernel: quiet},
		"kernel and policy":    {kernel: quiet, policy: one},
		"kernel and SDK":       {kernel: quiet, sdk: oneSDK},
		"all three":            {kernel: quiet, policy: one, sdk: oneSDK},
		"intents":              {kernel: quiet, intents: oneIntent, intentLog: &logHealth{}},
		"no intents":           {kernel: quiet, intents: "\n", intentLog: &logHealth{}},
		"all, collected":       {kernel: quiet, policy: one, sdk: oneSDK, policyLog: &logHealth{}, sdkLog: &logHealth{}},
		"the run's own policy": {kernel: quiet, policy: one, policyLog: &logHealth{facts: map[string]string{"policy_digest": digestA}}},
		"a session without calls": {kernel: strings.ReplaceAll(quiet, " 6 exec", " 600 read"), policy: `
			session S 20 30 25
			end S`},
		"one decision of another proxy":  {kernel: quiet, policy: "foreign a t allow"},
		"a policy that nobody needed":    {kernel: quiet, policyLog: &logHealth{}},
		"exchanges and names":            {kernel: "0 40 0-100\n 5 connect 198.18.0.8:80\n 6 connect 127.0.0.1:53", record: testNetwork([]string{"198.18.0.8"}, "a.test")},
		"exchanges and names, no kernel": {kernel: "", record: testNetwork([]string{"198.18.0.8"}, "a.test"), capture: input{change: absent("not_requested", "linux")}},
		"two of them, no kernel":         {kernel: "", policy: "", sdk: oneSDK, capture: input{change: absent("not_requested", "linux")}},
	} {
		t.Run(name, func(t *testing.T) {
			if j := w.run(t); j.report.Status != "clean" || len(j.report.Ambiguities) > 0 {
				t.Errorf("%s %q", j.report.Status, j.report.Ambiguities)
			}
		})
	}
}
