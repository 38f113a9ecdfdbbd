package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	glob "path"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// object is a JSON object in its own order of keys.
type object struct {
	keys   []string
	values []any
}

// tree decodes one JSON value; objects keep their order, numbers their digits.
func tree(t *testing.T, d *json.Decoder) any {
	tok, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch tok {
	case json.Delim('{'):
		o := &object{}
		for d.More() {
			k, _ := d.Token()
			o.keys, o.values = append(o.keys, k.(string)), append(o.values, tree(t, d))
		}
		d.Token()
		return o
	case json.Delim('['):
		list := []any{}
		for d.More() {
			list = append(list, tree(t, d))
		}
		d.Token()
		return &list
	}
	return tok
}

// render is the canonical text of a tree.
func render(v any) string {
	switch v := v.(type) {
	case *object:
		var parts []string
		for i, k := range v.keys {
			parts = append(parts, render(k)+":"+render(v.values[i]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case *[]any:
		var parts []string
		for _, e := range *v {
			parts = append(parts, render(e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case json.Number:
		return v.String()
	case nil:
		return "null"
	case bool:
		return fmt.Sprint(v)
	}
	return string(schemas.AppendQuote(nil, []byte(v.(string))))
}

// others are values that could replace a word.
var others = [][]string{
	{"allow", "deny"}, {"completed", "tool_error", "denied", "client_gone", "input_required"}, {"P_ALLOW_RULE", "P_ALLOW_DEFAULT", "P_DENY_RULE", "P_EVAL_ERROR"},
	{"tc_1", "tc_2", "tc_3", "tc_4", "tc_9"}, {"tool_server", "run"}, {"read_file", "write_file", "shell"},
	{"tool_call_started", "tool_call_completed", "run_finished", "run_failed"}, {"clean", "partial", "failed"},
	{"complete", "partial_ringbuf_drops", "absent", "present", "self_reported"}, {"success", "error"}, {"openai-agents", "none"},
	{"tool_call_started:tc_1", "run_started", "tool_call_started:tc_2"}, {"tool_call_finished:tc_1", "run_finished", "tool_call_finished:tc_2"},
	{"read-work", "no-write"}, {"read /work/a", "read /work/c", "write /work/a", "exec /usr/bin/files"},
	{"s4_network_policy: rules=2 blocked=1 policy=" + testDigest, "s4_network_policy: rules=3 blocked=1 policy=" + testDigest, "s4_network_policy: rules=2 blocked=2 policy=" + testDigest},
	{"s4_file_policy: rules=1 blocked=1 mechanism=lsm evidence=observed policy=" + testDigest, "s4_file_policy: rules=0 blocked=1 mechanism=lsm evidence=observed policy=" + testDigest,
		"s4_file_policy: rules=1 blocked=0 mechanism=lsm evidence=observed policy=" + testDigest, "s4_file_policy: rules=1 blocked=1 mechanism=seccomp evidence=observed policy=" + testDigest,
		"s4_file_policy: rules=1 blocked=1 mechanism=landlock evidence=observed policy=" + testDigest, "s4_file_policy: rules=1 blocked=1 mechanism=fanotify evidence=inferred policy=" + testDigest,
		"s4_file_policy: rules=1 blocked=1 mechanism=fanotify evidence=mixed policy=" + testDigest, "s4_file_policy: rules=2 blocked=1 mechanism=lsm evidence=observed policy=" + testDigest},
	{"s4_policy_capture: decision_events=5 sessions=1 refused=1", "s4_policy_capture: decision_events=5", "s4_policy_capture: decision_events=5 sessions=2 refused=1", "s4_policy_capture: decision_events=5 sessions=1 refused=2"},
	{"s6_windows: call=4 setup=1 idle=1 agent=4", "s6_windows: call=3 setup=2 idle=1 agent=4", "s6_windows: call=4 setup=2 idle=0 agent=4", "s6_windows: call=5 setup=0 idle=1 agent=5", "s6_windows: call=4 setup=1 idle=2 agent=3", "s6_windows: call=4 setup=0 idle=1 agent=5"},
	{"exec_without_tool_call:/usr/bin/sh", "exec_without_tool_call:/usr/bin/files"},
	{"tool_call_effects_outside_request:tc_1", "tool_call_effects_outside_request:tc_2", "tool_call_effects_outside_request:tc_3", "tool_calls_overlap:tc_1", "tool_call_id_repeated:tc_1", "tool_call_id_repeated:tc_4"},
	{"kernel_events_outside_tool_windows:tc_4", "kernel_events_outside_tool_windows:tc_1", "kernel_events_outside_tool_windows:tc_9", "kernel_events_lost", "kernel_times_unknown"},
	{"tool_call_not_finished:tc_3", "tool_call_not_finished:tc_1", "tool_server_unknown:files", "sdk_log_empty", "policy_log_empty", "policy_log_truncated", "sdk_run_not_finished"},
}

// edits calls try for every edit of one thing below v, with the path of what is
// edited and what is done to it. The tree is as before when it returns.
func edits(at string, v any, set func(any), try func(at, what string)) {
	swap := func(to any, what string) {
		set(to)
		try(at, what)
		set(v)
	}
	switch x := v.(type) {
	case *object:
		for i := range x.keys {
			k, old := x.keys[i], x.values[i]
			x.keys, x.values = slices.Delete(slices.Clone(x.keys), i, i+1), slices.Delete(slices.Clone(x.values), i, i+1)
			try(at+"/"+k, "key removed")
			x.keys, x.values = slices.Insert(x.keys, i, k), slices.Insert(x.values, i, old)
			edits(at+"/"+k, old, func(to any) { x.values[i] = to }, try)
		}
	case *[]any:
		list := slices.Clone(*x)
		for i := range list {
			*x = slices.Delete(slices.Clone(list), i, i+1)
			try(fmt.Sprintf("%s/%d", at, i), "element removed")
			*x = slices.Insert(slices.Clone(list), i, list[i])
			try(fmt.Sprintf("%s/%d", at, i), "element doubled")
			if i > 0 {
				*x = slices.Clone(list)
				(*x)[i-1], (*x)[i] = list[i], list[i-1]
				try(fmt.Sprintf("%s/%d", at, i), "elements swapped")
			}
			*x = slices.Clone(list)
			edits(fmt.Sprintf("%s/%d", at, i), list[i], func(to any) { (*x)[i] = to }, try)
		}
		*x = list
	case string:
		swap(x+"x", "longer")
		for _, set := range others {
			if !slices.Contains(set, x) {
				continue
			}
			for _, o := range set {
				if o != x {
					swap(o, o)
				}
			}
		}
	case json.Number:
		for _, d := range []int64{1, -1} {
			if n, err := x.Int64(); err == nil {
				swap(json.Number(fmt.Sprint(n+d)), fmt.Sprintf("%+d", d))
			}
		}
		swap(nil, "null")
	case bool:
		swap(!x, "flipped")
	case nil:
		swap("x", "text")
		swap(json.Number("0"), "0")
	}
}

// unnoticed are the edits that nothing else in the archive contradicts, by place
// and edit, and why. Everything else must be refused.
var unnoticed = []struct{ at, what, why string }{
	{"events.ndjson/0/command/*", "*", "what was run is said once"},
	{"layers/kernel.ndjson/*/pid", "*", "only the lines name the processes"},
	{"layers/kernel.ndjson/*/return_value", "*", "one success, or one error, for another"},
	{"layers/kernel.ndjson/*/mode", "*", "what a file is created with is said once"},
	{"layers/kernel.ndjson/*/cgroup_id", "*", "only this place has the number of the cgroup"},
	{"layers/kernel.ndjson/*/rule_id", "-1", "the rules are not in the archive, only their number"},
	{"layers/policy.ndjson/*/tool_call_id_source", "longer", "the client's message is not in the archive"},
	{"layers/policy.ndjson/*/rule_id", "*", "the policy file is not in the archive"},
	{"layers/policy.ndjson/1/reason_code", "P_EVAL_ERROR", "the policy file is not in the archive"},
	{"layers/policy.ndjson/[04]/outcome", "tool_error", "the server's answer is not in the archive"},
	{"layers/policy.ndjson/[04]/outcome", "input_required", "the server's answer is not in the archive"},
	{"layers/policy.ndjson/4/attempt", "+1", "attempts of a call may have other ids"},
	{"layers/sdk.ndjson/*/source", "longer", "the SDK's own word"},
	{"layers/sdk.ndjson/*/sdk_name", "text", "the SDK's own word"},
	{"layers/sdk.ndjson/*/sdk_version", "text", "the SDK's own word"},
	{"layers/sdk.ndjson/[34]/tool", "*", "the SDK's own word about a call that the policy did not see"},
	{"layers/sdk.ndjson/5/event_type", "run_failed", "the SDK's own word"},
	{"layers/sdk.ndjson/5/tool*", "text", "the SDK's own word"},
	{"correlation-report.json/bindings/[0-4]/kernel_event_count", "*", "which line is of which call is not in the archive: within the classes' counts"},
	{"correlation-report.json/bindings/0/kernel_effects/0", "element removed", "which line is of which call"},
	{"correlation-report.json/bindings/0/kernel_effects/1", "read /work/c", "which line is of which call"},
	{"correlation-report.json/bindings/4", "elements swapped", "which attempt a line came in"},
	{"correlation-report.json/ambiguities/2", "*", "which process was started by whom"},
	{"correlation-report.json/ambiguities/3", "kernel_events_outside_tool_windows:tc_1", "when a line came"},
	{"correlation-report.json/ambiguities/8", "element removed", "what a call's arguments named"},
	{"correlation-report.json/ambiguities/10", "element removed", "what a call's arguments named"},
	{"observation-health.json/notes/1", "longer", "blind spots are said once"},
	{"observation-health.json/notes/2", "s4_network_policy: rules=3 blocked=1 policy=" + testDigest, "the rules are not in the archive"},
	{"observation-health.json/notes/3", "s4_file_policy: rules=2 blocked=1 mechanism=lsm evidence=observed policy=" + testDigest, "the rules are not in the archive"},
	{"observation-health.json/notes/4", "s4_policy_capture: decision_events=5 sessions=2 refused=1", "sessions are not in the archive"},
	{"observation-health.json/notes/4", "s4_policy_capture: decision_events=5 sessions=1 refused=2", "refused messages are not in the archive"},
	{"observation-health.json/notes/6", "s6_windows: *", "which class a line is of: within the bindings' counts"},
}

// TestEverySingleEdit edits one thing after the other in an archive of three
// layers, with digests that fit, and lists what stays valid.
func TestEverySingleEdit(t *testing.T) {
	if code, r := check(t, layered().digest(t).tar(t)); code != 0 {
		t.Fatalf("the archive itself: exit %d, %+v", code, r.Findings)
	}
	used := map[int]bool{}
	tried, valid := 0, map[string]int{}
	one := func(member string, content func() string) func(at, what string) {
		return func(at, what string) {
			a := layered()
			a[member] = content()
			if a[member] == layered()[member] {
				return
			}
			tried++
			if code, _, _ := call(a.digest(t).tar(t)); code != 0 {
				return
			}
			for i, u := range unnoticed {
				if ok, _ := glob.Match(u.at, at); ok && (u.what == what || strings.HasSuffix(u.what, "*") && strings.HasPrefix(what, strings.TrimSuffix(u.what, "*"))) {
					used[i] = true
					valid[u.at]++
					return
				}
			}
			t.Errorf("%s: %s: nothing is noticed\n%s", at, what, a[member])
		}
	}
	for _, spec := range schemas.Members() {
		if spec.Member == bundle.ManifestName {
			continue
		}
		text := layered()[spec.Member]
		if !spec.Lines {
			root := parseTree(t, text)
			edits(spec.Member, root, func(any) {}, one(spec.Member, func() string { return render(root) }))
			continue
		}
		var lines []any
		for line := range strings.Lines(text) {
			lines = append(lines, parseTree(t, line))
		}
		content := func(lines []any) string {
			var b strings.Builder
			for _, l := range lines {
				b.WriteString(render(l) + "\n")
			}
			return b.String()
		}
		for i := range lines {
			edits(fmt.Sprintf("%s/%d", spec.Member, i), lines[i], func(any) {}, one(spec.Member, func() string { return content(lines) }))
			// A line removed, and the following ones numbered again.
			less := renumbered(t, text, i)
			one(spec.Member, func() string { return less })(fmt.Sprintf("%s/%d", spec.Member, i), "line removed")
		}
	}
	for i, u := range unnoticed {
		if !used[i] {
			t.Errorf("no edit %s of %s went unnoticed", u.what, u.at)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(valid)) {
		t.Logf("%3d edits unnoticed: %s", valid[at], at)
	}
	t.Logf("%d edits tried", tried)
}

func parseTree(t *testing.T, text string) any {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	return tree(t, d)
}

// renumbered is NDJSON without one line, with seq counted again.
func renumbered(t *testing.T, text string, without int) string {
	var b strings.Builder
	n, kept := 0, 0
	for line := range strings.Lines(text) {
		if n++; n-1 == without {
			continue
		}
		o := parseTree(t, line).(*object)
		o.values[slices.Index(o.keys, "seq")] = json.Number(fmt.Sprint(kept))
		kept++
		b.WriteString(render(o) + "\n")
	}
	return b.String()
}
