package main

import (
	"compress/gzip"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// edit replaces the first old in a member, and fails the test without one.
func edit(member, old, new string) func(t *testing.T, a content) {
	return func(t *testing.T, a content) {
		if !strings.Contains(a[member], old) {
			t.Fatalf("%s does not hold %q", member, old)
		}
		a[member] = strings.Replace(a[member], old, new, 1)
	}
}

func both(fs ...func(*testing.T, content)) func(*testing.T, content) {
	return func(t *testing.T, a content) {
		for _, f := range fs {
			f(t, a)
		}
	}
}

// An archive that was edited and digested again by hand is refused, by the rule
// that the edit breaks.
func TestMutations(t *testing.T) {
	const (
		events = bundle.EventsName
		kernel = bundle.KernelName
		policy = bundle.PolicyName
		sdk    = bundle.SDKName
		surf   = bundle.SurfaceName
		report = bundle.ReportName
		health = bundle.HealthName
	)
	for _, tc := range []struct {
		name string
		edit func(t *testing.T, a content)
		want string // rule ids, space separated; "" is valid
	}{
		{"untouched", func(*testing.T, content) {}, ""},

		{"member removed", func(_ *testing.T, a content) { delete(a, sdk) }, "member.missing"},
		{"member added", func(_ *testing.T, a content) { a["layers/zzz.ndjson"] = "x" }, "manifest.files member.unknown"},

		{"events empty", func(_ *testing.T, a content) { a[events] = "" }, "events.pair"},
		{"events third", func(_ *testing.T, a content) { a[events] += strings.SplitAfter(a[events], "\n")[1] }, "events.pair"},
		{"events swapped", func(_ *testing.T, a content) {
			l := strings.SplitAfter(a[events], "\n")
			a[events] = l[1] + l[0]
		}, "events.pair"},
		{"events exit code", edit(events, `"exit_code":0`, `"exit_code":1`), "events.result"},
		{"events success", edit(events, `"success":true`, `"success":false`), "events.result"},
		{"events signal", edit(events, `"signal":null`, `"signal":9`), "events.result"},
		{"events exit null", edit(events, `"exit_code":0`, `"exit_code":null`), "events.result"},
		{"events unknown key", edit(events, `"type"`, `"typ":1,"type"`), "line.schema"},
		{"events run_id", edit(events, runID, elsewise), "run_id"},
		{"events seq", edit(events, `"seq":1`, `"seq":2`), "line.schema"},
		{"events no newline", func(_ *testing.T, a content) { a[events] = strings.TrimSuffix(a[events], "\n") }, "lines.form"},
		{"events nested", edit(events, `["./agent.sh","a b"]`, strings.Repeat("[", 40)+strings.Repeat("]", 40)), "archive.limit"},

		{"kernel path", edit(kernel, "/tmp/out", "/tmp/oxt"), "surface.derived"},
		{"kernel endpoint", edit(kernel, "127.0.0.1:80", "127.0.0.1:81"), "surface.derived"},
		{"kernel exec", edit(kernel, "/usr/bin/env", "/usr/bin/envy"), "surface.derived"},
		{"kernel kind", edit(kernel, `"kind":"exec"`, `"kind":"openat"`), "line.schema"},
		{"kernel type", edit(kernel, `"event_type":4,"kind":"exec"`, `"event_type":211,"kind":"event_211"`), "events.result surface.derived"},
		{"kernel line removed", func(_ *testing.T, a content) { a[kernel] = strings.SplitAfterN(a[kernel], "\n", 2)[1] }, "seq"},
		{"kernel last line removed", func(_ *testing.T, a content) {
			l := strings.SplitAfter(a[kernel], "\n")
			a[kernel] = strings.Join(l[:3], "")
		}, "health.note report.bindings surface.derived"},
		{"kernel line doubled", func(_ *testing.T, a content) { a[kernel] = strings.SplitAfter(a[kernel], "\n")[0] + a[kernel] }, "seq"},
		{"kernel line added", func(_ *testing.T, a content) { a[kernel] += openLine(4, "/tmp/out") }, "health.note report.bindings"},
		{"kernel run_id", edit(kernel, runID, elsewise), "run_id"},
		{"kernel status", edit(kernel, `"return_value":-2,"status":"error"`, `"return_value":-2,"status":"success"`), "kernel.derived"},
		{"kernel return", edit(kernel, `"return_value":3`, `"return_value":-13`), "kernel.derived"},
		{"kernel status removed", edit(kernel, `"return_value":-2,"status":"error"`, `"return_value":-2`), "kernel.derived"},
		{"kernel status without return", edit(kernel, `"return_value":-2,"status"`, `"status"`), "line.schema"},
		{"kernel access mode", edit(kernel, `"access_mode":"write"`, `"access_mode":"read"`), "kernel.derived"},
		{"kernel access mode removed", edit(kernel, `"access_mode":"write",`, ``), "kernel.derived"},
		{"kernel flags", edit(kernel, `"flags":577`, `"flags":576`), "kernel.derived"},
		{"kernel operations", edit(kernel, `["create","truncate"]`, `["create"]`), "kernel.derived"},
		{"kernel operations removed", edit(kernel, `"operation_flags":["create","truncate"],`, ``), "kernel.derived"},
		{"kernel text", edit(kernel, "/tmp/out", `/tmp/\\q`), "kernel.text"},
		{"kernel destination", edit(kernel, `"event_type":2,"kind":"connect","value":"127.0.0.1:80"`, `"event_type":20,"kind":"connect_blocked","value":"127.0.0.1:80","network_destination":"127.0.0.2","network_port":80`), "kernel.derived"},
		{"kernel duplicate key", edit(kernel, `"pid":100`, `"pid":1,"pid":100`), "line.schema"},
		{"kernel float", edit(kernel, `"pid":100`, `"pid":1e2`), "line.schema"},
		{"kernel key case", edit(kernel, `"pid"`, `"PID"`), "line.schema"},
		{"kernel blank line", edit(kernel, "\n", "\n\n"), "lines.form"},
		{"kernel carriage return", edit(kernel, "\n", "\r\n"), "line.schema"},
		{"kernel no newline", func(_ *testing.T, a content) { a[kernel] = strings.TrimSuffix(a[kernel], "\n") }, "lines.form"},
		{"kernel huge line", func(_ *testing.T, a content) { a[kernel] += strings.Repeat("x", archive.MaxLine+9) + "\n" }, "archive.limit"},
		{"kernel NUL", edit(kernel, "/tmp/out", "/tmp/o\x00t"), "line.schema"},
		{"kernel bad UTF-8", edit(kernel, "/tmp/out", "/tmp/o\xfft"), "line.schema"},

		{"kernel key order", edit(kernel, `"flags":577,"mode":420`, `"mode":420,"flags":577`), "line.form"},
		{"kernel escape", edit(kernel, `/tmp/out`, `\u002ftmp/out`), "line.form"},
		{"kernel operations order", edit(kernel, `["create","truncate"]`, `["truncate","create"]`), "line.form"},
		{"events key order", edit(events, `"exit_code":0,"signal":null`, `"signal":null,"exit_code":0`), "line.form"},
		{"events blank", edit(events, `,"type"`, `, "type"`), "line.form"},
		{"policy key order", edit(policy, `"tool":"read_file","decision":"allow"`, `"decision":"allow","tool":"read_file"`), "line.form"},
		{"sdk optional key removed", edit(sdk, `"sdk_name":null,`, ``), "line.form"},

		{"policy decision", edit(policy, `"allow"`, `"deny"`), "report.ambiguities report.bindings surface.derived"},
		{"policy tool", edit(policy, `read_file`, `read_fil`), "report.ambiguities surface.derived"},
		{"policy id", edit(policy, `tc_1`, `tc_9`), "report.ambiguities report.bindings"},
		{"policy removed", func(_ *testing.T, a content) { a[policy] = "" }, "health.layer health.note report.ambiguities report.bindings surface.derived"},
		{"policy doubled", func(_ *testing.T, a content) { a[policy] += strings.Replace(a[policy], `"seq":0`, `"seq":1`, 1) }, "health.note report.ambiguities report.bindings"},
		{"policy seq", edit(policy, `"seq":0`, `"seq":1`), "seq"},
		{"policy run_id", edit(policy, runID, elsewise), "run_id"},
		{"policy empty id", edit(policy, `tc_1`, ``), "line.schema"},
		{"policy source type", edit(policy, `assay.tool.decision`, `assay.tool.other`), "line.schema"},

		{"sdk id", edit(sdk, `tc_2`, `tc_1`), "report.ambiguities"},
		{"sdk other id", edit(sdk, `tc_2`, `tc_3`), "health.note report.ambiguities"},
		{"sdk removed", func(_ *testing.T, a content) { a[sdk] = "" }, "health.layer health.note report.ambiguities"},
		{"sdk event type", edit(sdk, `run_finished`, `run_over`), "line.schema"},
		{"sdk seq", edit(sdk, `"seq":2`, `"seq":3`), "seq"},
		{"sdk run_id", edit(sdk, runID, elsewise), "run_id"},
		{"sdk shim", edit(events, `openai-agents`, `none`), "events.environment"},
		{"sdk shim and environment", both(edit(events, `openai-agents`, `none`), edit(events, `"ASSAY_RUNNER_RUN_ID","ASSAY_RUNNER_SDK_EVENT_LOG","ASSAY_RUNNER_SDK_EVENT_SCHEMA"`, ``)), "health.layer"},
		{"environment unknown", edit(events, `"ASSAY_RUNNER_RUN_ID"`, `"ASSAY_RUNNER_RUN_ID","ASSAY_RUNNER_S"`), "events.environment"},
		{"environment unsorted", edit(events, `"ASSAY_RUNNER_RUN_ID","ASSAY_RUNNER_SDK_EVENT_LOG"`, `"ASSAY_RUNNER_SDK_EVENT_LOG","ASSAY_RUNNER_RUN_ID"`), "events.environment"},
		{"environment without schema", edit(events, `,"ASSAY_RUNNER_SDK_EVENT_SCHEMA"`, ``), "events.environment"},
		{"environment without run id", edit(events, `"ASSAY_RUNNER_RUN_ID",`, ``), "events.environment"},

		{"surface path removed", edit(surf, `"/tmp/old",`, ``), "surface.derived"},
		{"surface path added", edit(surf, `"/tmp/old",`, `"/tmp/old","/tmp/one",`), "surface.derived"},
		{"surface path changed", edit(surf, `/tmp/out`, `/tmp/ouu`), "surface.derived"},
		{"surface other set", edit(surf, `"process_execs":["/usr/bin/env"],"mcp_tools":["read_file"]`, `"process_execs":[],"mcp_tools":["read_file","/usr/bin/env"]`), "surface.order surface.derived"},
		{"surface unsorted", edit(surf, `["/tmp/old","/tmp/out"]`, `["/tmp/out","/tmp/old"]`), "surface.order surface.derived"},
		{"surface repeated", edit(surf, `"/tmp/old",`, `"/tmp/old","/tmp/old",`), "document.schema surface.order"},
		{"surface emptied", edit(surf, `["/tmp/old","/tmp/out"]`, `[]`), "surface.derived"},
		{"surface tool", edit(surf, `"mcp_tools":["read_file"]`, `"mcp_tools":[]`), "surface.derived"},
		{"surface decision", edit(surf, `allow:`, `deny:`), "surface.derived"},
		{"surface run_id", edit(surf, runID, elsewise), "run_id"},
		{"surface set missing", edit(surf, `,"policy_decisions":["allow:read_file"]`, ``), "document.schema"},
		{"surface unknown key", edit(surf, `"mcp_tools"`, `"x":[],"mcp_tools"`), "document.schema"},
		{"surface newline", func(_ *testing.T, a content) { a[surf] += "\n" }, "document.form"},
		{"surface blank", edit(surf, `,"run_id"`, `, "run_id"`), "document.form"},
		{"surface escape", edit(surf, `/tmp/out`, `\/tmp\/out`), "document.form"},
		{"surface tail", func(_ *testing.T, a content) { a[surf] += "{}" }, "document.schema"},
		{"surface empty", func(_ *testing.T, a content) { a[surf] = "" }, "document.form"},
		{"surface not an object", func(_ *testing.T, a content) { a[surf] = "[]" }, "document.form"},
		{"surface nested", edit(surf, `"mcp_tools":["read_file"]`, `"mcp_tools":`+strings.Repeat("[", 500)+strings.Repeat("]", 500)), "archive.limit"},

		{"report status", edit(report, `"partial"`, `"clean"`), "report.status"},
		{"report failed", edit(report, `"partial"`, `"failed"`), "report.status"},
		{"report ambiguity removed", both(edit(report, `"sdk_tool_call_without_policy_binding:tc_2"`, ``), edit(report, `"partial"`, `"clean"`)), "report.ambiguities"},
		{"report ambiguity changed", edit(report, `binding:tc_2`, `binding:tc_9`), "report.ambiguities"},
		{"report count", edit(report, `"kernel_event_count":4`, `"kernel_event_count":3`), "report.bindings"},
		{"report decision", edit(report, `"allow"`, `"deny"`), "report.bindings"},
		{"report decision null", edit(report, `"allow"`, `null`), "report.bindings"},
		{"report id", edit(report, `"tc_1"`, `"tc_7"`), "report.bindings"},
		{"report window", edit(report, `"run_started"`, `"tool_started"`), "report.bindings"},
		{"report run_id", edit(report, runID, elsewise), "run_id"},
		{"report newline", func(_ *testing.T, a content) { a[report] += "\n" }, "document.form"},
		{"report key order", edit(report, `"start":"run_started","end":"run_finished"`, `"end":"run_finished","start":"run_started"`), "document.form"},
		{"report number form", edit(report, `"kernel_event_count":4`, `"kernel_event_count":4.0`), "document.schema"},
		{"report cgroup", edit(report, `"kernel_event_count"`, `"cgroup_id":7,"kernel_event_count"`), "report.bindings"},

		{"health drops", edit(health, `"ringbuf_drops":0,`, `"ringbuf_drops":1,`), "health.drops health.note"},
		{"health partial", edit(health, `"complete"`, `"partial_ringbuf_drops"`), "health.loss report.ambiguities"},
		{"health absent", edit(health, `"complete"`, `"absent"`), "health.cgroup health.network"},
		{"health platform", edit(health, `"linux"`, `"macos"`), "health.platform"},
		{"health cgroup partial", edit(health, `"cgroup_correlation":"clean"`, `"cgroup_correlation":"partial"`), "health.cgroup"},
		{"health cgroup failed", edit(health, `"cgroup_correlation":"clean"`, `"cgroup_correlation":"failed"`), "health.cgroup report.ambiguities"},
		{"health policy", edit(health, `"policy_layer":"present"`, `"policy_layer":"absent"`), "health.layer health.note report.ambiguities"},
		{"health sdk", edit(health, `"sdk_layer":"self_reported"`, `"sdk_layer":"absent"`), "health.layer"},
		{"health sdk raised", edit(health, `"sdk_layer":"self_reported"`, `"sdk_layer":"present"`), "health.layer"},
		{"health kernel count", edit(health, `monitor_events=4`, `monitor_events=5`), "health.note"},
		{"health policy count", edit(health, `decision_events=1`, `decision_events=2`), "health.note"},
		{"health policy count, other word", edit(health, `decision_events=1`, `policy_events=1`), "health.note"},
		{"health notes swapped", both(edit(health, `"s4_policy_capture: decision_events=1",`, ``), edit(health, `sdk_tool_calls=2"`, `sdk_tool_calls=2","s4_policy_capture: decision_events=1"`)), "health.note"},
		{"health sdk count", edit(health, `sdk_events=5`, `sdk_events=4`), "health.note"},
		{"health sdk calls", edit(health, `sdk_tool_calls=2`, `sdk_tool_calls=1`), "health.note"},
		{"health sdk calls removed", edit(health, ` sdk_tool_calls=2`, ``), "health.note"},
		{"health kernel note removed", edit(health, `s2_kernel_capture`, `s2_kernel_other`), "health.note"},
		{"health blind spots removed", edit(health, `"s2_blind_spots: inherited descriptors (0); shared memory",`, ``), "health.note"},
		{"health note twice", edit(health, `"s2_blind`, `"s2_kernel_capture: monitor_events=4 ringbuf_drops=0","s2_blind`), "health.note"},
		{"health contract note", edit(health, `"s2_blind`, `"contract_only_mode: x","s2_blind`), "health.note"},
		{"health loss note", edit(health, `"s2_blind`, `"s2_kernel_loss: dropped=3","s2_blind`), "health.loss"},
		{"missed events without a cause", edit(health, `"s2_blind`, `"s2_missed: exec=1","s2_blind`), "health.loss"},
		{"health coverage", both(edit(health, `coverage":"connect_only"`, `coverage":"unknown"`), edit(health, `coverage=connect_only`, `coverage=unknown`)), "health.network"},
		{"health scope", both(edit(health, `scope":"diagnostic_only"`, `scope":"peer_set"`), edit(health, `scope=diagnostic_only`, `scope=peer_set`)), "health.network"},
		{"health coverage note", edit(health, `coverage=connect_only`, `coverage=absent`), "health.note"},
		{"health enum", edit(health, `"complete"`, `"perfect"`), "document.schema"},
		{"health null", edit(health, `"ringbuf_drops":0`, `"ringbuf_drops":null`), "document.schema"},
		{"health duplicate key", edit(health, `"platform":"linux"`, `"platform":"linux","platform":"linux"`), "document.schema"},
		{"health run_id", edit(health, runID, elsewise), "run_id"},
		{"health newline", func(_ *testing.T, a content) { a[health] += "\n" }, "document.form"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := sample()
			tc.edit(t, a)
			code, r := check(t, zipped(t, a.digest(t).tar(t), gzip.BestSpeed))
			want := strings.Fields(tc.want)
			slices.Sort(want)
			if got := rules(r); !slices.Equal(got, want) {
				t.Fatalf("rules %v, expected %v\n%+v", got, want, r.Findings)
			}
			if wantCode := btoi(tc.want != ""); code != wantCode || r.Valid != (wantCode == 0) {
				t.Errorf("exit %d valid=%t, expected exit %d", code, r.Valid, wantCode)
			}
		})
	}
}

// Packs and mappings of a manifest.
var (
	packB    = `{"name":"b","version":"1.0.0","digest":"sha256:` + strings.Repeat("b", 64) + `","kind":"quality"}`
	packC    = `{"name":"c","version":"1.0.0","digest":"sha256:` + strings.Repeat("c", 64) + `","kind":"replay"}`
	mappingB = `{"rule":"b@1.0.0:x","framework":"F","ref":"1"}`
	mappingC = `{"rule":"c@1.0.0:x","framework":"F","ref":"1"}`
)

// withPacks gives the manifest two packs and two mappings.
func withPacks(p1, p2, m1, m2 string) func(*testing.T, content) {
	return edit(bundle.ManifestName, `}}}`, `}},"x-assay":{"packs_applied":[`+p1+`,`+p2+`],"mappings":[`+m1+`,`+m2+`]}}`)
}

// The same edits to the manifest, or without a new digest, are found as well.
func TestManifestMutations(t *testing.T) {
	const m = bundle.ManifestName
	for _, tc := range []struct {
		name string
		edit func(t *testing.T, a content)
		want string
	}{
		{"member edited", edit(bundle.KernelName, "/tmp/out", "/tmp/oxt"), "member.digest surface.derived"},
		{"member longer", func(_ *testing.T, a content) { a[bundle.HealthName] += " " }, "document.form member.size"},
		{"digest edited", edit(m, `"sha256:`, `"sha256:0000`), "document.schema"},
		{"digest of something else", func(_ *testing.T, a content) {
			at := strings.Index(a[m], `"sha256:`) + len(`"sha256:`)
			a[m] = a[m][:at] + strings.Repeat("0", 64) + a[m][at+64:]
		}, "member.digest"},
		{"digest algorithm", edit(m, `"sha256":"sha256:`, `"sha256":"SHA256:`), "document.schema"},
		{"size edited", edit(m, `"bytes":`, `"bytes":1`), "member.size"},
		{"path edited", edit(m, `"path":"events.ndjson"`, `"path":"event.ndjson"`), "document.schema"},
		{"entry removed", func(_ *testing.T, a content) {
			b := a[m]
			i, j := strings.Index(b, `"events.ndjson":`), strings.Index(b, `"layers/kernel.ndjson":`)
			a[m] = b[:i] + b[j:]
		}, "manifest.files"},
		{"lists itself", edit(m, `"files":{`, `"files":{"a.json":{"path":"a.json","sha256":"sha256:`+strings.Repeat("0", 64)+`","bytes":0},`), "manifest.files"},

		{"packs not sorted", withPacks(packC, packB, mappingB, mappingC), "manifest.packs"},
		{"pack twice", withPacks(packB, packB, mappingB, mappingB), "manifest.packs"},
		{"mapping of no pack", withPacks(packB, packC, mappingB, strings.Replace(mappingC, "1.0.0", "1.0.1", 1)), "manifest.packs"},
		{"mappings unsorted", withPacks(packB, packC, mappingC, mappingB), "manifest.packs"},
		{"mapping twice", withPacks(packB, packC, mappingB, mappingB), "manifest.packs"},
		{"no packs", edit(m, `}}}`, `}},"x-assay":{"packs_applied":[]}}`), "document.schema"},
		{"pack without a digest", withPacks(packB, strings.Replace(packC, `"digest":"sha256:`, `"digest":"md5:`, 1), mappingB, mappingC), "document.schema"},
		{"pack of another kind", withPacks(packB, strings.Replace(packC, "replay", "magic", 1), mappingB, mappingC), "document.schema"},
		{"keys of a pack", withPacks(packB, strings.Replace(packC, `"name":"c","version":"1.0.0"`, `"version":"1.0.0","name":"c"`, 1), mappingB, mappingC), "document.form"},
		{"newline", func(_ *testing.T, a content) { a[m] += "\n" }, "document.form"},
		{"key order", edit(m, `"schema":"assay.runner.archive_manifest.v0","run_id":"run_test"`, `"run_id":"run_test","schema":"assay.runner.archive_manifest.v0"`), "document.form"},
		{"run_id", edit(m, runID, elsewise), "run_id"},
		{"run_id form", edit(m, runID, "run test"), "document.schema"},
		{"not JSON", func(_ *testing.T, a content) { a[m] = "{]}" }, "document.schema"},
		{"duplicate key", edit(m, `"files":`, `"run_id":"run_test","files":`), "document.schema"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := sample().digest(t)
			tc.edit(t, a)
			code, r := check(t, a.tar(t))
			want := strings.Fields(tc.want)
			slices.Sort(want)
			if got := rules(r); !slices.Equal(got, want) || code != 1 {
				t.Fatalf("exit %d, rules %v, expected %v\n%+v", code, got, want, r.Findings)
			}
		})
	}
}
