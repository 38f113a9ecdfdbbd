package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// contradiction is an archive that was valid, with one thing changed that something else in
// it denies.
type contradiction struct {
	name string
	base func() content
	edit func(t *testing.T, a content)
	want string // rule ids, space separated; "" is valid
}

func checkContradictions(t *testing.T, list []contradiction) {
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			a := c.base()
			c.edit(t, a)
			_, r := check(t, a.digest(t).tar(t))
			want := strings.Fields(c.want)
			slices.Sort(want)
			if got := rules(r); !slices.Equal(got, want) {
				t.Errorf("rules %v, expected %v\n%+v", got, want, r.Findings)
			}
		})
	}
}

// note adds notes before the one about blind spots.
func note(texts ...string) func(*testing.T, content) {
	return edit(bundle.HealthName, `"s2_blind_spots`, `"`+strings.Join(texts, `","`)+`","s2_blind_spots`)
}

// blindTo adds a text to the note about blind spots.
func blindTo(text string) func(*testing.T, content) {
	return edit(bundle.HealthName, "shared memory", "shared memory; "+text)
}

// dropping is layered as a run with drops.
func dropping() content {
	a := layered()
	a[bundle.HealthName] = strings.NewReplacer(`"complete"`, `"partial_ringbuf_drops"`, `"ringbuf_drops":0`, `"ringbuf_drops":7`, "ringbuf_drops=0", "ringbuf_drops=7",
		`"s2_blind`, `"s2_kernel_loss: canary_after=missed dropped=7","s2_drops: exec=2 openat=5","s2_blind`).Replace(a[bundle.HealthName])
	a[bundle.ReportName] = strings.Replace(a[bundle.ReportName], `"kernel_events_outside`, `"kernel_events_lost","kernel_events_outside`, 1)
	return a
}

func noCapture() content { return withoutKernel(sample(), wholeRun) }

// asked collects a decision log, in a record without one.
func asked(t *testing.T, a content) {
	edit(bundle.EventsName, `"env_keys":[]`, `"env_keys":["ASSAY_RUNNER_POLICY_DECISION_LOG","ASSAY_RUNNER_RUN_ID"]`)(t, a)
}

// unused adds the note that nobody used the decision log.
func unused(_ *testing.T, a content) {
	r := strings.TrimSuffix(a[bundle.ReportName], "}")
	if head, notes, there := strings.Cut(r, `"notes":[`); there {
		r = head + `"notes":["policy_log_unused",` + notes
	} else {
		r += `,"notes":["policy_log_unused"]`
	}
	a[bundle.ReportName] = r + "}"
}

// TestSameOrder: the findings about one archive are the same each time, in one order.
func TestSameOrder(t *testing.T) {
	a := large(1, 1)
	asked(t, a)
	unused(t, a)
	edit(bundle.ReportName, `"ambiguities":[]`, `"ambiguities":["policy_log_replaced","policy_log_truncated","policy_log_writer_open_at_end","policy_log_written_after_end"]`)(t, a)
	edit(bundle.ReportName, `"clean"`, `"partial"`)(t, a)
	in := a.digest(t).tar(t)
	_, first := check(t, in)
	if len(first.Findings) < 4 {
		t.Fatalf("%+v", first.Findings)
	}
	for range 20 {
		if _, again := check(t, in); !slices.Equal(again.Findings, first.Findings) {
			t.Fatalf("%+v\nthen\n%+v", first.Findings, again.Findings)
		}
	}
}

// Numbers that stand in several places, and what follows from them.
func TestLossContradictions(t *testing.T) {
	const health = bundle.HealthName
	drops := func(from, to string) func(*testing.T, content) { return edit(health, from, to) }
	escaped := note("s2_kernel_loss: escapes=1", "s2_cgroup_escape: escapes=1 kernel_layer downgraded to absent")
	absent := both(edit(health, `"kernel_layer":"complete"`, `"kernel_layer":"absent"`), edit(health, `"cgroup_correlation":"clean"`, `"cgroup_correlation":"partial"`),
		edit(health, `coverage":"connect_only"`, `coverage":"absent"`), edit(health, `scope":"diagnostic_only"`, `scope":"not_applicable"`))
	checkContradictions(t, []contradiction{
		{"drops", dropping, func(*testing.T, content) {}, ""},
		{"escapes in a complete layer", sample, escaped, "health.cgroup health.loss"},
		{"escapes in a partial correlation", sample, both(escaped, absent), "health.cgroup"},
		{"an escape note alone", sample, note("s2_cgroup_escape: escapes=1 kernel_layer downgraded to absent"), "health.cgroup"},
		{"an absent layer with a capture", sample, absent, "health.cgroup"},
		{"other escapes", sample, both(absent, note("s2_kernel_loss: escapes=1", "s2_cgroup_escape: escapes=2 kernel_layer downgraded to absent")), "health.cgroup"},
		{"no escapes", sample, note("s2_cgroup_escape: escapes=0 kernel_layer downgraded to absent"), "health.note"},
		{"drops lowered", dropping, both(drops(`"ringbuf_drops":7`, `"ringbuf_drops":1`), drops(`ringbuf_drops=7`, `ringbuf_drops=1`)), "health.loss"},
		{"drops zero", dropping, both(drops(`"ringbuf_drops":7`, `"ringbuf_drops":0`), drops(`ringbuf_drops=7`, `ringbuf_drops=0`)), "health.loss"},
		{"drops lowered in all but one place", dropping, both(drops(`"ringbuf_drops":7`, `"ringbuf_drops":6`), drops(`ringbuf_drops=7`, `ringbuf_drops=6`), drops(`dropped=7`, `dropped=6`)), "health.loss"},
		{"an operation lowered", dropping, drops("openat=5", "openat=4"), "health.loss"},
		{"an operation that wraps", dropping, drops("openat=5", "openat=18446744073709551615 unlink=6"), "health.loss"},
		{"an unknown operation", dropping, drops("openat=5", "opening=5"), "health.note health.loss"},
		{"drops of no record", dropping, drops("exec=2 openat=5", "exec=0 openat=7"), "health.note health.loss"},
		{"a dropped move without an escape", dropping, drops("exec=2 openat=5", "exec=2 move=5"), "health.cgroup"},
		{"loss removed", dropping, drops(`"s2_kernel_loss: canary_after=missed dropped=7",`, ``), "health.loss"},
		{"loss doubled", dropping, drops(`"s2_drops`, `"s2_kernel_loss: canary_after=missed dropped=7","s2_drops`), "health.loss health.note"},
		{"loss as free text", dropping, drops(`canary_after=missed dropped=7`, `some were lost dropped=7`), "health.loss health.note"},
		{"an unknown cause", dropping, drops(`canary_after=missed`, `bad_luck=1`), "health.loss health.note"},
		{"a canary that was seen", dropping, drops(`canary_after=missed`, `canary_after=seen`), "health.loss health.note"},
		{"kinds out of order", dropping, drops(`dropped=7`, `dropped=7 interference=trace,bpf`), "health.loss health.note"},
		{"engines out of order", dropping, drops(`dropped=7`, `dropped=7 engines=docker,crun`), "health.loss health.note"},
		{"engines in order", dropping, drops(`dropped=7`, `dropped=7 engines=crun,docker`), ""},
		{"kinds in order", dropping, drops(`dropped=7`, `dropped=7 interference=bpf,trace`), ""},
		{"missed events that wrap", dropping, both(drops(`dropped=7`, `dropped=7 recursion_misses=1`), drops(`"s2_blind`, `"s2_missed: a=18446744073709551615 b=2","s2_blind`)), "health.loss"},
	})
}

// Notes have one form, in an archive of this runner.
func TestNoteContradictions(t *testing.T) {
	const health = bundle.HealthName
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	last := func(text string) func(*testing.T, content) { return edit(health, `agent=4"`, `agent=4","`+text+`"`) }
	checkContradictions(t, []contradiction{
		{"an unknown note", sample, edit(health, `sdk_tool_calls=2"`, `sdk_tool_calls=2","seen: everything"`), "health.note"},
		{"no colon", sample, edit(health, `sdk_tool_calls=2"`, `sdk_tool_calls=2","everything"`), "health.note"},
		{"blind spots none", sample, edit(health, "inherited descriptors (0); shared memory", "none"), "health.note"},
		{"quality without a counter", sample, note("s2_path_quality: perfect=1"), "health.note"},
		{"quality", sample, note("s2_path_quality: lexical=2"), ""},
		{"end of an earlier release", sample, note("s2_capture_end: stopped by a signal while the cgroup still had tasks"), ""},
		{"another end", sample, note("s2_capture_end: all is well"), "health.note"},
		{"survivors", sample, note("s2_survivors_killed: 0"), "health.note"},
		{"more joined texts than lines", sample, note("s2_path_quality: lexical=5"), "health.note"},
		{"unresolved files without file rules", sample, note("s2_path_quality: file_unresolved=1"), "health.note"},
		{"more unresolved files than were refused", layered, note("s2_path_quality: file_unresolved=2"), "health.note"},
		{"unresolved files", layered, note("s2_path_quality: file_unresolved=1"), ""},
		{"what network rules cannot see, without them", sample, blindTo(schemas.BlindNetworkRules), "health.note"},
		{"what file rules cannot see, without them", sample, blindTo(schemas.BlindFileRules), "health.note"},
		{"logs of file rules without them", sample, blindTo(schemas.BlindLogs + " (1)"), "health.note"},
		{"what the mechanism cannot see", layered, blindTo(schemas.BlindMechanism[schemas.SourceLSM]), ""},
		{"what another mechanism cannot see", layered, blindTo(schemas.BlindMechanism[schemas.SourceLandlock]), "health.note"},
		{"no core dumps", sample, blindTo(schemas.BlindCores + " (0)"), "health.note"},
		{"core dumps", sample, blindTo(schemas.BlindCores + " (1)"), ""},
		{"twice", sample, note("s2_survivors_killed: 1", "s2_survivors_killed: 1"), "health.note"},
		{"--drop", layered, last(`normalize_drop: program=\"\" sha256=` + empty + ` dropped=0`), ""},
		{"--drop with words", layered, last("normalize_drop: x"), "health.note"},
		{"--drop of another program", layered, last(`normalize_drop: program=\".\" sha256=` + empty + ` dropped=0`), "health.note"},
		{"--drop lifts what it left out", layered, both(edit(health, "blocked=1 mech", "blocked=3 mech"), last(`normalize_drop: program=\"\" sha256=`+empty+` dropped=2`)), ""},
		{"--drop lifts no more", layered, both(edit(health, "blocked=1 mech", "blocked=4 mech"), last(`normalize_drop: program=\"\" sha256=`+empty+` dropped=2`)), "health.note"},
		{"--drop lifts once", layered, both(edit(health, "blocked=1 pol", "blocked=3 pol"), edit(health, "blocked=1 mech", "blocked=3 mech"), last(`normalize_drop: program=\"\" sha256=`+empty+` dropped=2`)), "health.note"},
		{"no capture, no reason", noCapture, edit(health, `"contract_only_mode: kernel capture was not requested",`, ``), "health.note"},
		{"no capture, free text", noCapture, edit(health, `kernel capture was not requested`, `kernel capture was fine`), "health.note"},
		{"no capture, another platform", noCapture, edit(health, `kernel capture was not requested`, `kernel capture is not supported on macos`), "health.note"},
		{"no capture, lines left out", noCapture, edit(health, `sdk_tool_calls=2"`, `sdk_tool_calls=2","normalize_drop: program=\"\" sha256=`+empty+` dropped=1"`), "health.note"},
	})
}

// Which rules hold is not changed by one key more.
func TestOriginContradictions(t *testing.T) {
	const health, events = bundle.HealthName, bundle.EventsName
	started, finished := edit(events, `"run_started",`, `"run_started","window_elapsed_ms":0,`), edit(events, `"run_finished",`, `"run_finished","window_elapsed_ms":5,`)
	checkContradictions(t, []contradiction{
		{"another implementation", foreign, func(*testing.T, content) {}, ""},
		{"elapsed time in an own archive", sample, both(started, finished), "origin.marks"},
		{"elapsed time at the start only", foreign, edit(events, `"window_elapsed_ms":5,`, ``), "origin.marks"},
		{"a note of this runner", foreign, edit(health, `"s4_policy`, `"canonical_pids: x","s4_policy`), "origin.marks"},
		{"capture_origin", sample, edit(health, `"ringbuf_drops":0`, `"capture_origin":"third_party","ringbuf_drops":0`), "origin.marks"},
		{"redaction", sample, edit(health, `"notes":`, `"redaction":{},"notes":`), "origin.marks"},
		{"no network fields", sample, edit(health, `"network_protocol_coverage":"connect_only","network_endpoint_claim_scope":"diagnostic_only",`, ``), "health.network health.note origin.marks"},
	})
}

// The report says by which rules an archive was checked, and one can be demanded.
func TestOrigin(t *testing.T) {
	for want, a := range map[string]content{schemas.OriginRunner: sample(), schemas.OriginContract: foreign()} {
		in := a.digest(t).tar(t)
		if _, r := check(t, in); r.Record.Origin != want {
			t.Errorf("origin %q, expected %s", r.Record.Origin, want)
		}
		if _, out, _ := call(in); !strings.Contains(out, "\norigin    "+want+": ") {
			t.Errorf("%s is not printed:\n%s", want, out)
		}
		for _, demand := range []string{schemas.OriginRunner, schemas.OriginContract} {
			if code, _, _ := call(in, "--require", "origin="+demand); code != btoi(demand != want) {
				t.Errorf("%s, --require origin=%s: exit %d", want, demand, code)
			}
		}
	}
}

// A collected log whose layer is absent, counts and effects that the layers deny.
func TestReportContradictions(t *testing.T) {
	const report, health, events = bundle.ReportName, bundle.HealthName, bundle.EventsName
	env := edit(events, `"env_keys":["ASSAY`, `"env_keys":["ASSAY_RUNNER_POLICY_DECISION_LOG","ASSAY`)
	empty := edit(report, `"ambiguities":[`, `"ambiguities":["policy_log_empty",`)
	alone := func() content { return withoutPolicy(sample()) }
	quiet := func() content { return large(1, 1) }
	collected := edit(events, `"agent_shim":"none"`, `"agent_shim":"openai-agents"`)
	checkContradictions(t, []contradiction{
		{"a collected log is not there", func() content { return large(1, 1) }, both(collected, edit(events, `"env_keys":[]`, `"env_keys":["ASSAY_RUNNER_RUN_ID","ASSAY_RUNNER_SDK_EVENT_LOG","ASSAY_RUNNER_SDK_EVENT_SCHEMA"]`)), "report.ambiguities"},
		{"the decision log is not there", alone, env, "report.ambiguities"},
		{"the decision log was empty", alone, both(env, edit(report, `"ambiguities":[]`, `"ambiguities":["policy_log_empty"]`), edit(report, `"clean"`, `"partial"`)), ""},
		{"the decision log was not used", quiet, both(asked, unused), ""},
		{"an unused log of calls", layered, both(env, unused), "report.ambiguities"},
		{"an unused log that nobody collected", quiet, unused, "report.ambiguities"},
		{"an unused log that was cut", quiet, both(asked, unused, edit(report, `"ambiguities":[]`, `"ambiguities":["policy_log_truncated"]`), edit(report, `"clean"`, `"partial"`)), "report.ambiguities"},
		{"an unused log, and calls of the SDK", alone, both(env, unused), "report.ambiguities"},
		{"the decision log was not empty", layered, both(env, empty), "report.ambiguities"},
		{"an effect removed with its code", layered, both(edit(report, `"failed-read /work/b","read /work/a"`, `"failed-read /work/b"`), edit(report, `"tool_call_effects_outside_request:tc_1",`, ``)), "report.bindings"},
		{"all effects removed", layered, both(edit(report, `,"kernel_effects":["failed-read /work/b","read /work/a"]`, ``), edit(report, `"tool_call_effects_outside_request:tc_1",`, ``)), "report.bindings"},
		{"effects cut without need", layered, edit(report, `"failed-read /work/b","read /work/a"]`, `"read /work/a"],"kernel_effects_cut":true`), "report.bindings"},
		{"one tree with two counts", twoUnended, edit(report, `"kernel_event_count":6,"window":{"start":"run_started","end":"run_finished"}`, `"kernel_event_count":5,"window":{"start":"run_started","end":"run_finished"}`), "report.bindings"},
		{"lines of calls without a server", layered, both(edit(report, `"tool_call_targets_unknown:tc_4"`, `"tool_call_targets_unknown:tc_4","tool_server_unknown:files"`), toRun), "health.note report.ambiguities report.bindings"},
		{"windows that wrap", layered, edit(health, "call=4 setup=1 idle=1 agent=4", "call=4 setup=18446744073709551615 idle=1 agent=6"), "health.note"},
	})
}

// toRun gives all bindings the scope of a run whose tool server is not known.
func toRun(_ *testing.T, a content) {
	a[bundle.ReportName] = strings.ReplaceAll(a[bundle.ReportName], `"kernel_scope":"tool_server"`, `"kernel_scope":"run"`)
}

// twoUnended is layered with a second call of which nobody saw the end.
func twoUnended() content {
	a := layered()
	a[bundle.PolicyName] += decisionLine(5, "tc_5", "read_file", "allow", `"reason_code":"P_ALLOW_RULE","rule_id":"read-work","policy_digest":"`+testDigest+`"`)
	a[bundle.ReportName] = strings.NewReplacer(`],"ambiguities":`, `,{"tool_call_id":"tc_5","policy_decision":"allow","kernel_event_count":6,"window":{"start":"run_started","end":"run_finished"},"kernel_scope":"tool_server"}],"ambiguities":`,
		`"policy_call_not_in_sdk:tc_4",`, `"policy_call_not_in_sdk:tc_4","policy_call_not_in_sdk:tc_5",`, `"tool_call_not_finished:tc_3",`, `"tool_call_not_finished:tc_3","tool_call_not_finished:tc_5",`).Replace(a[bundle.ReportName])
	a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], "decision_events=5", "decision_events=6", 1)
	return a
}

// renaming is sample with a rename in place of its last line.
func renaming() content {
	a := sample()
	at := strings.Index(a[bundle.KernelName], `{"schema":"assay.runner.kernel_event.v0","run_id":"run_test","seq":3`)
	a[bundle.KernelName] = a[bundle.KernelName][:at] +
		kernelLine(3, `"event_type":213,"kind":"event_213","value":"/tmp/old","return_value":0,"status":"success"`) +
		kernelLine(4, `"event_type":214,"kind":"event_214","value":"/tmp/out","return_value":0,"status":"success"`)
	a[bundle.HealthName] = strings.Replace(a[bundle.HealthName], "monitor_events=4", "monitor_events=5", 1)
	a[bundle.ReportName] = strings.Replace(a[bundle.ReportName], `"kernel_event_count":4`, `"kernel_event_count":5`, 1)
	return a
}

// What a line cannot say, and what it cannot say beside another one.
func TestKernelContradictions(t *testing.T) {
	const kernel, events, health = bundle.KernelName, bundle.EventsName, bundle.HealthName
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	last := func(text string) func(*testing.T, content) {
		return edit(health, `sdk_tool_calls=2"`, `sdk_tool_calls=2","`+text+`"`)
	}
	fewer := both(edit(health, "monitor_events=5", "monitor_events=4"), edit(bundle.ReportName, `"kernel_event_count":5`, `"kernel_event_count":4`), func(_ *testing.T, a content) {
		a[kernel] = a[kernel][:strings.Index(a[kernel], `{"schema":"assay.runner.kernel_event.v0","run_id":"run_test","seq":4`)]
	})
	const oldDone, outDone, doubt = `"/tmp/old","return_value":0,"status":"success"`, `"/tmp/out","return_value":0,"status":"success"`, `,"doubt":"changed"`
	unproven := edit(kernel, `"value":"/tmp/old","return_value":-2,"status":"error"`, `"value":"/tmp/old","status":"unproven"`)
	named := func(to string) func(*testing.T, content) {
		return both(edit(kernel, `"value":"/tmp/old"`, `"value":"`+to+`"`), edit(bundle.SurfaceName, `"/tmp/old"`, `"`+to+`"`))
	}
	undecoded := func(value, end string) func(*testing.T, content) {
		return edit(kernel, `"event_type":211,"kind":"event_211","value":"/tmp/old","return_value":-2,"status":"error"`, `"event_type":240,"kind":"event_240","value":`+value+`,`+end)
	}
	checkContradictions(t, []contradiction{
		{"a rename", renaming, func(*testing.T, content) {}, ""},
		{"a rename with another outcome", renaming, edit(kernel, `"/tmp/out","return_value":0`, `"/tmp/out","return_value":-2`), "kernel.derived"},
		{"a rename with another error", renaming, edit(kernel, `"/tmp/out","return_value":0,"status":"success"`, `"/tmp/out","return_value":-2,"status":"error"`), "kernel.order"},
		{"a rename without its second line", renaming, fewer, "kernel.order"},
		{"a second line that --drop left out", renaming, both(fewer, last(`normalize_drop: program=\"\" sha256=`+empty+` dropped=1`)), ""},
		{"a second line alone", renaming, edit(kernel, `"event_type":213,"kind":"event_213"`, `"event_type":211,"kind":"event_211"`), "kernel.order"},
		{"canonical numbers", sample, last("canonical_pids: pid is the process's number in the fork tree, not the kernel's"), ""},
		{"canonical numbers that fall", sample, both(last("canonical_pids: pid is the process's number in the fork tree, not the kernel's"), edit(kernel, `"pid":100,"event_type":1`, `"pid":101,"event_type":1`)), "kernel.order"},
		{"a program without a name", sample, both(edit(kernel, `"/usr/bin/env"`, `null`), edit(bundle.SurfaceName, `"/usr/bin/env"`, ``)), "kernel.order"},
		{"a program whose name could not be read", sample, both(edit(kernel, `"/usr/bin/env"`, `null`), edit(bundle.SurfaceName, `"/usr/bin/env"`, ``), note("s2_path_quality: path_fault=1")), ""},
		{"no process", sample, edit(kernel, `"pid":100`, `"pid":0`), "kernel.derived"},
		{"an unassigned number", sample, edit(kernel, `"event_type":211,"kind":"event_211"`, `"event_type":999,"kind":"event_999"`), "kernel.derived"},
		{"keys of an open", sample, edit(kernel, `"/usr/bin/env","return_value"`, `"/usr/bin/env","flags":0,"mode":0,"return_value"`), "kernel.derived"},
		{"keys of a refusal", sample, edit(kernel, `"/usr/bin/env","return_value"`, `"/usr/bin/env","cgroup_id":1,"return_value"`), "kernel.derived"},
		{"a program that returned", sample, edit(kernel, `"/usr/bin/env","return_value":0`, `"/usr/bin/env","return_value":1`), "kernel.derived"},
		{"a descriptor that there is not", sample, edit(kernel, `"return_value":3`, `"return_value":2147483648`), "kernel.derived"},
		{"an error that there is not", sample, edit(kernel, `"return_value":-2,`, `"return_value":-9999,`), "kernel.derived"},
		{"a failed execution with success", sample, edit(kernel, `"event_type":211,"kind":"event_211","value":"/tmp/old","return_value":-2,"status":"error"`, `"event_type":201,"kind":"event_201","value":"/tmp/old","return_value":0,"status":"success"`), "kernel.derived"},
		{"a pending connect with status", sample, edit(kernel, `"return_value":-115`, `"return_value":-115,"status":"error"`), "kernel.derived"},
		{"an endpoint with zeros", sample, both(edit(kernel, "127.0.0.1:80", "127.0.0.1:080"), edit(bundle.SurfaceName, "127.0.0.1:80", "127.0.0.1:080")), "kernel.derived"},
		{"an endpoint that is a path", sample, both(edit(kernel, "127.0.0.1:80", "/run/x"), edit(bundle.SurfaceName, "127.0.0.1:80", "/run/x")), "kernel.derived"},
		{"a NUL in a path", sample, both(edit(kernel, "/tmp/old", `/tmp/o\u0000d`), edit(bundle.SurfaceName, "/tmp/old", `/tmp/o\u0000d`)), "kernel.derived"},
		{"an exit code that there is not", sample, both(edit(events, `"exit_code":0`, `"exit_code":1099511627776`), edit(events, `"success":true`, `"success":false`)), "events.result"},
		{"a signal that there is not", sample, both(edit(events, `"exit_code":0,"signal":null`, `"exit_code":null,"signal":-9`), edit(events, `"success":true`, `"success":false`)), "events.result"},
		{"a number that no process has", sample, edit(kernel, `"pid":100`, `"pid":4194304`), "kernel.order"},
		{"a canonical number that no process has", sample, both(last("canonical_pids: pid is the process's number in the fork tree, not the kernel's"), func(_ *testing.T, a content) {
			a[kernel] = strings.ReplaceAll(a[kernel], `"pid":100`, `"pid":4194304`)
		}), ""},
		{"a doubt that was not counted", renaming, both(edit(kernel, oldDone, oldDone+doubt), edit(kernel, outDone, outDone+doubt)), "health.note"},
		{"a doubt of two lines", renaming, both(edit(kernel, oldDone, oldDone+doubt), edit(kernel, outDone, outDone+doubt), note("s2_path_quality: changed=1")), ""},
		{"a call without a proof that was not counted", sample, unproven, "health.note"},
		{"a call without a proof", sample, both(unproven, note("s2_path_quality: unproven=1")), ""},
		{"a program that did not start", sample, edit(kernel, `"/usr/bin/env","return_value":0,"status":"success"`, `"/usr/bin/env","return_value":-2,"status":"error"`), "kernel.derived"},
		{"a script without a program", sample, both(edit(kernel, `"event_type":211,"kind":"event_211","value":"/tmp/old","return_value":-2,"status":"error"`, `"event_type":200,"kind":"event_200","value":"/tmp/old","return_value":0,"status":"success"`),
			edit(bundle.SurfaceName, `"/tmp/old",`, ``), edit(bundle.SurfaceName, `"/usr/bin/env"`, `"/tmp/old","/usr/bin/env"`)), "kernel.order"},
		{"success without a program", sample, both(edit(kernel, `"event_type":4,"kind":"exec"`, `"event_type":206,"kind":"event_206"`)), "events.result"},
		{"a result without a command", sample, edit(events, `"command":["./agent.sh","a b"]`, `"command":[]`), "events.result"},
		{"a mount that returns a number", renaming, both(edit(kernel, `"event_type":213,"kind":"event_213","value":"/tmp/old","return_value":0`, `"event_type":227,"kind":"event_227","value":"/tmp/old","return_value":7`),
			edit(kernel, `"event_type":214,"kind":"event_214","value":"/tmp/out","return_value":0`, `"event_type":228,"kind":"event_228","value":"/tmp/out","return_value":7`)), "kernel.derived"},
		{"a component without a name", sample, named("/tmp//old"), "kernel.derived"},
		{"a component that is a dot", sample, named("/tmp/./old"), "kernel.derived"},
		{"a last component that is a dot", sample, named("/tmp/."), "kernel.derived"},
		{"a last component without a name", sample, named("/tmp/old/"), "kernel.derived"},
		{"a way back, of a text", sample, named("/tmp/../old"), ""},
		{"a path without a beginning", sample, both(edit(kernel, `"value":"/tmp/old"`, `"value":"tmp//old"`), edit(bundle.SurfaceName, `"/tmp/old","/tmp/out"`, `"/tmp/out","tmp//old"`)), ""},
		{"an operation that is not decoded", sample, both(undecoded("null", `"return_value":0,"status":"success"`), edit(bundle.SurfaceName, `"/tmp/old",`, ``)), "health.loss"},
		{"an operation that is not decoded, and that the kernel refused", sample, both(undecoded("null", `"return_value":-22,"status":"error"`), edit(bundle.SurfaceName, `"/tmp/old",`, ``)), ""},
		{"a value of what is not decoded", sample, both(undecoded(`"/tmp/old"`, `"return_value":-2,"status":"error"`), edit(bundle.SurfaceName, `"/tmp/old",`, ``)), "kernel.derived"},
		{"one session with two policies", layered, edit(bundle.PolicyName, testDigest, "sha256:"+empty), "policy.decision report.ambiguities"},
		{"an overlap of one call", layered, both(edit(bundle.ReportName, `"tool_call_targets_unknown:tc_4"`, `"tool_call_targets_unknown:tc_4","tool_calls_overlap:tc_3"`)), "report.ambiguities"},
	})
}
