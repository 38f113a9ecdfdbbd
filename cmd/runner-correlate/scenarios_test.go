package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

func TestDenied(t *testing.T) {
	// There is no effect on a denied target, before or after the denial.
	j := world{kernel: agent, policy: `
		session S 20 30 25
		deny S 0 tc_1 write_file 100-105 /etc/passwd
		end S`}.run(t)
	j.want(t, `tc_1 deny 0 tool_server own []`, `kernel_events_outside_tool_windows:tc_1`)
}

func TestDeniedButDone(t *testing.T) {
	for name, c := range map[string]struct{ kernel, policy, bindings, codes string }{
		"by the agent itself": {agent + "1 40 300-400\n 301 write /etc/passwd\n 302 !write /etc/shadow", `
			session S 20 30 25
			deny S 0 tc_1 write_file 250-255 /etc
			end S`,
			`tc_1 deny 0 tool_server own [write /etc/passwd]`,
			`denied_call_with_kernel_effects:tc_1`},
		"before the denial": {agent + "1 40 240-400\n 241 write /etc/passwd\n 255 write /etc/passwd", `
			session S 20 30 25
			deny S 0 tc_1 write_file 250-255 /etc
			end S`,
			`tc_1 deny 0 tool_server own []`, ``},
		"by an allowed call with that target": {agent, `
			session S 20 30 25
			deny S 0 tc_1 read_file 50-55 /work
			allow S 1 tc_2 read_file 60-220 completed /work
			end S`,
			`tc_1 deny 0 tool_server own []
			tc_2 allow 3 tool_server own [failed-read /work/missing, read /work/a, unlink /work/b]`, ``},
		"by an allowed call with another target": {agent, `
			session S 20 30 25
			deny S 0 tc_1 read_file 50-55 /work/a
			allow S 1 tc_2 read_file 60-220 completed /work/b
			end S`,
			`tc_1 deny 0 tool_server own [read /work/a]
			tc_2 allow 3 tool_server own [failed-read /work/missing, read /work/a, unlink /work/b]`,
			`denied_call_with_kernel_effects:tc_1
			tool_call_effects_outside_request:tc_2`},
		"by the agent, while an allowed call runs": {agent + "1 40 30-400\n 120 write /work/a", `
			session S 20 30 25
			deny S 0 tc_1 read_file 50-55 /work
			allow S 1 tc_2 read_file 60-220 completed /work
			end S`,
			`tc_1 deny 0 tool_server own [write /work/a]
			tc_2 allow 3 tool_server own [failed-read /work/missing, read /work/a, unlink /work/b]`,
			`denied_call_with_kernel_effects:tc_1`},
		"while an allowed call of an unknown server runs": {agent, `
			session S 20 31 25
			deny S 0 tc_1 read_file 50-55 /work
			allow S 1 tc_2 read_file 60-220 completed /work
			end S`,
			`tc_1 deny 0 run own []
			tc_2 allow 3 run own [failed-read /work/missing, read /work/a, unlink /work/b]`,
			`exec_before_sessions:/bin/server
			tool_server_unknown:srv-S`},
		"while an allowed call of a server in another tree runs": {"0 10 -5000\n 100 write /work/a\n" + strings.TrimPrefix(agent, "\n0 10 -5000\n"), `
			session S 20 30 25
			deny S 0 tc_1 read_file 50-55 /work/a
			allow S 1 tc_2 read_file 60-105 completed /work
			end S`,
			`tc_1 deny 0 tool_server own [read /work/a, write /work/a]
			tc_2 allow 0 tool_server own []`,
			`decision_without_kernel_events:tc_2
			denied_call_with_kernel_effects:tc_1
			kernel_events_outside_tool_windows:tc_2`},
		"a path with a .. proves nothing": {agent + "1 40 300-400\n 301 write /etc/x/../../tmp/y", `
			session S 20 30 25
			deny S 0 tc_1 write_file 250-255 /etc
			end S`,
			`tc_1 deny 0 tool_server own []`, ``},
		"a name with only a common prefix": {agent + "1 40 300-400\n 301 write /etcetera", `
			session S 20 30 25
			deny S 0 tc_1 write_file 250-255 /etc
			end S`,
			`tc_1 deny 0 tool_server own []`, ``},
		"everything": {agent + "1 40 300-400\n 301 write /x", `
			session S 20 30 25
			deny S 0 tc_1 write_file 250-255 /
			end S`,
			`tc_1 deny 0 tool_server own [write /x]`, `denied_call_with_kernel_effects:tc_1`},
		"a connection": {agent + "1 40 300-400\n 301 connect 10.0.0.1:443\n 302 connect_blocked 10.0.0.2:443", `
			session S 20 30 25
			deny S 0 tc_1 fetch 250-255 10.0.0.1:443 10.0.0.2:443
			end S`,
			`tc_1 deny 0 tool_server own [connect 10.0.0.1:443]`, `denied_call_with_kernel_effects:tc_1`},
	} {
		t.Run(name, func(t *testing.T) { world{kernel: c.kernel, policy: c.policy}.run(t).want(t, c.bindings, c.codes) })
	}
}

func TestOverlap(t *testing.T) {
	j := world{kernel: agent, policy: `
		session S 20 30 25
		allow S 0 tc_1 read_file 100-180 completed /work
		allow S 1 tc_2 read_file 140-220 completed /work
		allow S 2 tc_3 read_file 221-230 completed /work
		end S`}.run(t)
	j.want(t, `
		tc_1 allow 5 tool_server run []
		tc_2 allow 5 tool_server run []
		tc_3 allow 0 tool_server own []`, `
		decision_without_kernel_events:tc_3
		tool_calls_overlap:tc_1
		tool_calls_overlap:tc_2`)
	if !slices.Contains(j.health.Notes, "s6_windows: call=3 setup=4 idle=0 agent=2") {
		t.Errorf("notes %q", j.health.Notes)
	}
}

// TestTwoServers: calls of different servers may run at the same time.
func TestTwoServers(t *testing.T) {
	kernel := agent + `
1 50 40-4000
	41 exec /bin/runner-policy
2 60 45-3900
	46 exec /bin/other
	120 write /work/c
	500 read /late
`
	policy := `
		session S 20 30 25
		session T 50 60 47
		allow S 0 tc_1 read_file 100-200 completed /work
		allow T 0 tc_2 write_file 100-200 completed /work
		end S
		end T`
	world{kernel: kernel, policy: policy}.run(t).want(t, `
		tc_1 allow 2 tool_server own [failed-read /work/missing, read /work/a]
		tc_2 allow 1 tool_server own [write /work/c]`, `
		kernel_events_outside_tool_windows:tc_1
		kernel_events_outside_tool_windows:tc_2`)
	// The tree of one server is unknown: its calls get the lines of no tree.
	world{kernel: kernel + "1 70 101-102\n 101 read /agent/x\n", policy: strings.Replace(policy, "50 60", "50 61", 1)}.run(t).want(t, `
		tc_1 allow 2 tool_server own [failed-read /work/missing, read /work/a]
		tc_2 allow 2 run own [read /agent/x, write /work/c]`, `
		exec_without_tool_call:/bin/other
		kernel_events_outside_tool_windows:tc_1
		tool_server_unknown:srv-T`)
	// Both trees are unknown: the calls of both get the same lines.
	world{kernel: kernel, policy: strings.NewReplacer("50 60", "50 61", "20 30", "20 31").Replace(policy)}.run(t).want(t, `
		tc_1 allow 13 run run []
		tc_2 allow 13 run run []`, `
		exec_before_sessions:/bin/server
		exec_without_tool_call:/bin/other
		tool_calls_overlap:tc_1
		tool_calls_overlap:tc_2
		tool_server_unknown:srv-S
		tool_server_unknown:srv-T`)
	// Both sessions have the same server: there is one tree.
	world{kernel: kernel, policy: strings.Replace(policy, "50 60", "20 30", 1)}.run(t).want(t, `
		tc_1 allow 5 tool_server run []
		tc_2 allow 5 tool_server run []`, `
		exec_without_tool_call:/bin/other
		exec_without_tool_call:/bin/runner-policy
		kernel_events_outside_tool_windows:tc_1
		kernel_events_outside_tool_windows:tc_2
		tool_calls_overlap:tc_1
		tool_calls_overlap:tc_2`)
}

// TestNested: the lines of a server that a tool server's own proxy starts count for
// both.
func TestNested(t *testing.T) {
	world{kernel: `
0 10 -
	1 exec /bin/agent
1 20 10-
	11 exec /bin/runner-policy
2 30 20-
	21 exec /bin/server
	110 read /work/a
3 40 110-
	111 exec /bin/runner-policy
4 50 112-
	113 exec /bin/inner
	150 write /elsewhere
	300 write /late
`, policy: `
		session S 20 30 25
		session T 40 50 114
		allow S 0 tc_1 read_file 100-200 completed /work
		allow T 0 tc_2 write_file 140-160 completed /elsewhere
		end S
		end T`}.run(t).want(t, `
		tc_1 allow 4 tool_server own [exec /bin/inner, exec /bin/runner-policy, read /work/a, write /elsewhere]
		tc_2 allow 1 tool_server own [write /elsewhere]`, `
		kernel_events_outside_tool_windows:tc_1
		kernel_events_outside_tool_windows:tc_2
		tool_call_effects_outside_request:tc_1`)
}

func TestOutlives(t *testing.T) {
	world{kernel: agent + "3 31 120-900\n 130 exec /bin/sleep\n 800 write /work/late\n", policy: one}.run(t).want(t, `
		tc_1 allow 3 tool_server own [exec /bin/sleep, failed-read /work/missing, read /work/a]`, `
		kernel_events_outside_tool_windows:tc_1
		tool_call_effects_outside_request:tc_1`)
}

func TestBypass(t *testing.T) {
	kernel := strings.ReplaceAll(agent, "\t210 unlink /work/b\n", "")
	world{kernel: kernel + "1 40 300-400\n 301 exec /bin/cat\n 302 script /work/run.sh\n2 41 303-\n 304 exec /bin/cat\n", policy: one}.run(t).want(t, `
		tc_1 allow 2 tool_server own [failed-read /work/missing, read /work/a]`, `
		exec_without_tool_call:/bin/cat
		exec_without_tool_call:/work/run.sh`)
	// Programs of a proxy's ancestors have no code; those of other processes have.
	world{kernel: `
0 10 -
	1 exec /bin/agent
1 11 2-
	3 exec /bin/npx
	4 exec /bin/node
2 12 5-
	6 exec /bin/uname
2 20 10-
	11 exec /bin/runner-policy
3 30 20-
	21 exec /bin/server
	110 read /work/a
`, policy: one}.run(t).want(t, `tc_1 allow 1 tool_server own [read /work/a]`, `exec_before_sessions:/bin/uname`)
	// Of very many programs only the first ones are named.
	var b strings.Builder
	b.WriteString(kernel + "1 40 300-400\n")
	for i := range 200 {
		b.WriteString(" 301 exec /bin/" + strings.Repeat("x", i+1) + "\n")
	}
	j := world{kernel: b.String(), policy: one}.run(t)
	if n := len(j.report.Ambiguities); n != schemas.MaxCodesOfKind+1 || j.report.Ambiguities[n-1] != "exec_without_tool_call:…" || j.report.Ambiguities[63] != "exec_without_tool_call:/bin/"+strings.Repeat("x", 64) {
		t.Errorf("%d codes %q", n, j.report.Ambiguities)
	}
}

// TestLies: nothing in the SDK log changes the kernel layer, bindings and policy layer.
func TestLies(t *testing.T) {
	policy := one + "\nsession T 50 60 47\ndeny T 0 tc_9 rm 300-310 /x\nend T\n"
	want := world{kernel: agent, policy: policy}.run(t)
	for name, c := range map[string]struct {
		sdk, codes string
		log        *logHealth
	}{
		"lies": {"started tc_1 other_tool\ncompleted tc_1 other_tool\ncompleted tc_9 rm\nstarted tc_77 x\nfinished", `
			sdk_completed_denied_call:tc_9
			sdk_tool_call_not_completed:tc_77
			sdk_tool_call_not_started:tc_9
			sdk_tool_call_without_policy_binding:tc_77
			sdk_tool_name_differs:tc_1`, nil},
		"forged id":        {"started tc_666 read_file\ncompleted tc_666 read_file\nfinished", "policy_call_not_in_sdk:tc_1\npolicy_call_not_in_sdk:tc_9\nsdk_tool_call_without_policy_binding:tc_666", nil},
		"flood":            {strings.Repeat("started tc_1 read_file\n", 1000), "policy_call_not_in_sdk:tc_9\nsdk_log_flooded\nsdk_run_not_finished\nsdk_tool_call_not_completed:tc_1\nsdk_tool_call_repeated:tc_1", &logHealth{facts: map[string]string{"stopped": "too_many_lines"}, counters: map[string]uint64{"dropped_bytes": 5}}},
		"truncation":       {"started tc_1 read_file\nstarted tc_9 rm\n{\"schema\":\"assay.run", "sdk_log_truncated\nsdk_run_not_finished\nsdk_tool_call_not_completed:tc_1", &logHealth{facts: map[string]string{"unterminated": "yes"}}},
		"truncated, plain": {"started tc_1 read_file\nstarted tc_9 rm\n{\"schema\":\"assay.run", "sdk_log_invalid:3:bad_json\nsdk_run_not_finished\nsdk_tool_call_not_completed:tc_1", nil},
		"replaced":         {"\n", "sdk_log_empty\nsdk_log_replaced", &logHealth{facts: map[string]string{"replaced": "yes"}}},
		"another schema":   {`{"schema":"assay.runner.policy_event.v0"}` + "\n", "sdk_log_empty\nsdk_log_invalid:1:bad_schema", &logHealth{}},
	} {
		t.Run(name, func(t *testing.T) {
			j := world{kernel: agent, policy: policy, sdk: c.sdk, sdkLog: c.log}.run(t)
			if !slices.Equal(j.policy, want.policy) || !slices.Equal(j.kernel, want.kernel) || j.bindings() != want.bindings() || !slices.Equal(j.entries, want.entries) {
				t.Error("the SDK's word changed another layer")
			}
			a, b := j.health, want.health
			if a.KernelLayer != b.KernelLayer || a.PolicyLayer != b.PolicyLayer || a.CgroupCorrelation != b.CgroupCorrelation || a.RingbufDrops != b.RingbufDrops {
				t.Errorf("health %+v, without an SDK %+v", a, b)
			}
			if a.SDKLayer != "self_reported" && a.SDKLayer != "absent" {
				t.Errorf("sdk_layer %s", a.SDKLayer)
			}
			var own []string
			for _, code := range j.report.Ambiguities {
				if !slices.Contains(want.report.Ambiguities, code) {
					own = append(own, code)
				}
			}
			var trimmed []string
			for l := range strings.Lines(c.codes) {
				if l = strings.TrimSpace(l); l != "" {
					trimmed = append(trimmed, l)
				}
			}
			if !slices.Equal(own, trimmed) {
				t.Errorf("codes\n%s\nwant\n%s", strings.Join(own, "\n"), strings.Join(trimmed, "\n"))
			}
		})
	}
}

func TestKilledProxy(t *testing.T) {
	world{kernel: agent, policy: `
		session S 20 30 25
		allow S 0 tc_1 read_file 100-120 completed /work
		allow S 1 tc_2 read_file 140- /work
		`}.run(t).want(t, `
		tc_1 allow 1 tool_server own [read /work/a]
		tc_2 allow 5 tool_server run []`, `
		policy_session_not_finished:srv-S
		tool_call_not_finished:tc_2`)
	// A server that exits during a call ends its window.
	world{kernel: agent, policy: strings.Replace(one, "completed", "server_gone", 1)}.run(t).want(t, `
		tc_1 allow 2 tool_server own [failed-read /work/missing, read /work/a]`, `
		kernel_events_outside_tool_windows:tc_1
		tool_call_not_finished:tc_1`)
}

// TestAttempts: a call that continues in another request is one call with two windows.
func TestAttempts(t *testing.T) {
	j := world{kernel: agent, policy: `
		session S 20 30 25
		allow S 0 tc_1 read_file 100-120 input_required /work
		again S 0 tc_1 read_file 140-220 completed /work
		end S`}.run(t)
	j.want(t, `
		tc_1 allow 1 tool_server own [read /work/a]
		tc_1 allow 2 tool_server own [failed-read /work/missing, unlink /work/b]`, ``)
	if !strings.HasSuffix(j.policy[1], `"attempt":2,"targets":["/work"]}`) || strings.Contains(j.policy[0], "attempt") {
		t.Errorf("%q", j.policy)
	}
	// The same id in another session is another call.
	world{kernel: agent, policy: `
		session S 20 30 25
		session T 50 60 30
		allow S 0 tc_1 read_file 100-120 completed /work
		allow T 0 tc_1 read_file 140-220 completed /work
		end S
		end T`}.run(t).want(t, `
		tc_1 allow 5 tool_server run []
		tc_1 allow 4 run run []`, `
		kernel_events_outside_tool_windows:tc_1
		tool_call_id_repeated:tc_1
		tool_server_unknown:srv-T`)
}

func TestTargetsCut(t *testing.T) {
	for targets, code := range map[string]string{"/work …": "", "/work/b …": "tool_call_targets_unknown:tc_1", "…": "tool_call_targets_unknown:tc_1", "/work/a": ""} {
		t.Run(targets, func(t *testing.T) {
			world{kernel: strings.ReplaceAll(agent, "\t210 unlink /work/b\n", ""), policy: strings.Replace(one, "/work", targets, 1)}.run(t).want(t,
				`tc_1 allow 2 tool_server own [failed-read /work/missing, read /work/a]`, code)
		})
	}
}

// TestPidsUsedAgain: a pid means the process that had it when the session started.
func TestPidsUsedAgain(t *testing.T) {
	world{kernel: `
0 10 -
	1 exec /bin/agent
1 20 10-4000
	11 exec /bin/runner-policy
2 30 12-15
	13 exec /bin/true
2 30 20-
	21 exec /bin/server
	110 read /work/a
2 30 900-
	901 exec /bin/late
`, policy: one}.run(t).want(t, `tc_1 allow 1 tool_server own [read /work/a]`, `
		exec_before_sessions:/bin/true
		exec_without_tool_call:/bin/late`)
}

func TestEffectsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(agent)
	for i := range 40 {
		b.WriteString("3 31 120-900\n 130 read /work/" + strings.Repeat("y", i+1) + "\n 131 read /work/a\n 131 uring\n")
	}
	j := world{kernel: b.String(), policy: one}.run(t)
	x := j.report.Bindings[0]
	if len(x.KernelEffects) != schemas.MaxEffects || !x.EffectsCut || x.KernelEventCount != 122 {
		t.Errorf("%d effects, cut %v, %d lines", len(x.KernelEffects), x.EffectsCut, x.KernelEventCount)
	}
	long := strings.Repeat("z", 3000)
	j = world{kernel: agent + "3 31 120-900\n 130 read /work/1" + long + "\n 131 read /work/2" + long + "\n", policy: one}.run(t)
	if x := j.report.Bindings[0]; len(x.KernelEffects) != 3 || !x.EffectsCut {
		t.Errorf("%d effects, cut %v", len(x.KernelEffects), x.EffectsCut)
	}
}

// enforcedRules is a capture that enforced rules of one kind: two rules, of which 0 and 2
// refused three operations.
func enforcedRules(e schemas.Enforcement) input {
	in := input{facts: map[string]string{e.State: "enforced", e.Policy: digestA},
		counters: map[string]uint64{e.Rules: 2, e.Blocked: 3, e.ByRule + "0": 1, e.ByRule + "2": 2}}
	if e.Event == schemas.EventFileBlocked {
		in.facts["file_mechanism"], in.counters["file_inserted"] = "lsm", 0
	}
	return in
}

// TestEnforcedRules: a refusal has a line and a note, but is not an effect.
func TestEnforcedRules(t *testing.T) {
	notes := []string{"s4_network_policy: rules=2 blocked=3 policy=" + digestA, "s4_file_policy: rules=2 blocked=3 mechanism=lsm evidence=observed policy=" + digestA}
	for i, effect := range []string{"connect_blocked 10.0.0.1:80", "file_blocked /work/a"} {
		e := schemas.Enforcements[i]
		enforced := enforcedRules(e)
		w := world{kernel: agent + "3 31 120-900\n 130 " + effect + "\n", policy: one, sdk: oneSDK, capture: enforced}
		j := w.run(t)
		effects := []string{effect, "failed-read /work/missing", "read /work/a"}
		slices.Sort(effects)
		j.want(t, `tc_1 allow 3 tool_server own [`+strings.Join(effects, ", ")+`]`, `kernel_events_outside_tool_windows:tc_1`)
		at := slices.Index(j.health.Notes, notes[i])
		if at < 0 || !strings.HasPrefix(j.health.Notes[at-1], "s2_blind_spots") || !strings.HasPrefix(j.health.Notes[at+1], "s4_policy_capture") ||
			!strings.Contains(j.health.Notes[at-1], "; past the "+e.What+": ") {
			t.Errorf("notes %q", j.health.Notes)
		}
		// The note needs no policy layer: rules apply to runs without a tool call too.
		if j := (world{kernel: agent, capture: enforced}).run(t); !slices.Contains(j.health.Notes, notes[i]) {
			t.Errorf("notes %q", j.health.Notes)
		}
		for want, change := range map[string]func(c *schemas.StageHealth){
			"no counter " + strconv.Quote(e.Blocked):                     func(c *schemas.StageHealth) { delete(c.Counters, e.Blocked) },
			"no counter " + strconv.Quote(e.Rules):                       func(c *schemas.StageHealth) { delete(c.Counters, e.Rules) },
			"counts 4 operations that " + e.What + " refused, by rule 3": func(c *schemas.StageHealth) { c.Counters[e.Blocked] = 4 },
			e.Policy + `="x"`: func(c *schemas.StageHealth) { c.Facts[e.Policy] = "x" },
		} {
			wantRefused(t, enforced, change, want)
		}
	}
}

func wantRefused(t *testing.T, in input, change func(c *schemas.StageHealth), want string) {
	t.Helper()
	in.change = func(c, _ *schemas.StageHealth) { change(c) }
	if code, _, msg := call(world{kernel: agent, capture: in}.stream(t)); code != 3 || !strings.Contains(msg, want) {
		t.Errorf("exit %d %s, expected 3 and %q", code, msg, want)
	}
}

// TestFileMechanisms: the note says how file rules were enforced, the blind spots what gets
// past, and what did not come through the ring is in the sums.
func TestFileMechanisms(t *testing.T) {
	enforced := enforcedRules(schemas.Enforcements[1])
	wantRefused(t, enforced, func(c *schemas.StageHealth) { delete(c.Facts, "file_mechanism") }, `no fact "file_mechanism"`)
	wantRefused(t, enforced, func(c *schemas.StageHealth) { c.Facts["file_mechanism"] = "seccomp" }, "expected one of lsm, fanotify, landlock")
	wantRefused(t, enforced, func(c *schemas.StageHealth) { delete(c.Counters, "file_inserted") }, `no counter "file_inserted"`)
	wantRefused(t, enforced, func(c *schemas.StageHealth) { c.Counters["file_inserted"] = 1 }, "but accounts for")
	for mechanism, evidence := range map[string]string{"lsm": "observed", "fanotify": "mixed", "landlock": "inferred"} {
		in := enforced
		in.change = func(c, _ *schemas.StageHealth) { c.Facts["file_mechanism"] = mechanism }
		if mechanism == "fanotify" {
			in.change = func(c, _ *schemas.StageHealth) {
				c.Facts["file_mechanism"] = mechanism
				for _, n := range []string{"seen", "emitted", "read"} {
					c.Counters[n] -= 1
				}
				c.Counters["file_inserted"] = 1
			}
		}
		j := world{kernel: agent, capture: in}.run(t)
		if !slices.ContainsFunc(j.health.Notes, func(s string) bool { return strings.Contains(s, " mechanism="+mechanism+" evidence="+evidence+" ") }) ||
			schemas.BlindMechanism[mechanism] == "" || !slices.ContainsFunc(j.health.Notes, func(s string) bool { return strings.HasSuffix(s, "; "+schemas.BlindMechanism[mechanism]) }) {
			t.Errorf("%s: %q", mechanism, j.health.Notes)
		}
		// Automatic rules are a blind spot; refusals of what could not be found are named, and no loss.
		change := in.change
		in.change = func(c, n *schemas.StageHealth) {
			change(c, n)
			c.Counters["file_rules_automatic"], c.Counters["file_unresolved"] = 2, 3
		}
		j = world{kernel: agent, capture: in}.run(t)
		if notes := strings.Join(j.health.Notes, "\n"); !strings.Contains(notes, "; logs of the run that automatic rules let the command write to (2); ") ||
			!strings.Contains(notes, "file_unresolved=3") || strings.Contains(notes, "s2_kernel_loss") {
			t.Errorf("%s: %q", mechanism, j.health.Notes)
		}
		if j.health.KernelLayer != "complete" {
			t.Errorf("%s: %s", mechanism, j.health.KernelLayer)
		}
	}
	if len(schemas.BlindMechanism) != len(schemas.FileMechanisms) {
		t.Errorf("blind spots of %d mechanisms", len(schemas.BlindMechanism))
	}
}
