package main

import (
	"slices"
	"strings"
	"testing"
)

// agent is a run in which the agent started one proxy with one server.
const agent = `
0 10 -5000
	1 exec /bin/agent
	2 read /agent/config
1 20 10-4000
	11 exec /bin/runner-policy
	12 read /agent/policy.yaml
2 30 20-3900
	21 exec /bin/server
	22 read /srv/config
	110 read /work/a
	150 !read /work/missing
	210 unlink /work/b
`

func TestAllowed(t *testing.T) {
	j := world{kernel: agent, policy: `
		session S 20 30 25
		allow S 0 tc_1 read_file 100-200 completed /work
		allow S 1 tc_2 delete 205-220 completed /work/b
		end S`,
		sdk: "started tc_1 read_file\ncompleted tc_1 read_file\nstarted tc_2 delete\ncompleted tc_2 delete\nfinished"}.run(t)
	j.want(t, `
		tc_1 allow 2 tool_server own [failed-read /work/missing, read /work/a]
		tc_2 allow 1 tool_server own [unlink /work/b]`, ``)
	if j.report.Status != "clean" || j.health.PolicyLayer != "present" || j.health.SDKLayer != "self_reported" {
		t.Errorf("%+v %+v", j.report, j.health)
	}
	want := []string{"s4_policy_capture: decision_events=2 sessions=1 refused=0", "s5_sdk_capture: sdk_events=5 sdk_tool_calls=2", "s6_windows: call=3 setup=4 idle=0 agent=2"}
	for _, w := range want {
		found := false
		for _, n := range j.health.Notes {
			found = found || n == w
		}
		if !found {
			t.Errorf("no note %q in %q", w, j.health.Notes)
		}
	}
}

// TestMentionExcusesNothing: an allowed call excuses an effect on what a denied call named only if its rule looked at
// the argument that names it. A log that does not say what was looked at is read as before.
func TestMentionExcusesNothing(t *testing.T) {
	for second, bad := range map[string]string{
		"read_file 100-200 completed /work":           "denied_call_with_kernel_effects:tc_1", // names it less closely
		"read_file 100-200 completed /work/a":         "",
		"read_file 100-200 completed /work/a ~/other": "",
		"echo 100-200 completed ~/work/a":             "denied_call_with_kernel_effects:tc_1",
		"echo 100-200 completed ~/work/a /other":      "denied_call_with_kernel_effects:tc_1",
	} {
		j := world{kernel: agent, policy: "session S 20 30 25\ndeny S 0 tc_1 read_file 40-50 /work/a\nallow S 1 tc_2 " + second + "\nallow S 2 tc_3 delete 205-220 completed /work/b\nend S"}.run(t)
		got := ""
		for _, code := range j.report.Ambiguities {
			if strings.HasPrefix(code, "denied_call_with_kernel_effects") {
				got = code
			}
		}
		if got != bad || slices.ContainsFunc(j.report.Ambiguities, func(c string) bool { return strings.HasPrefix(c, "policy_log") }) {
			t.Errorf("%s: %q, expected %q, of %q", second, got, bad, j.report.Ambiguities)
		}
	}
}
