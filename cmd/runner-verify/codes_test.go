package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// withCodes is the archive of three layers with other ambiguities, and the status
// that goes with them.
func withCodes(t *testing.T, codes []string) content {
	a := layered()
	r, err := schemas.ParseReport([]byte(a[bundle.ReportName]))
	if err != nil {
		t.Fatal(err)
	}
	r.Ambiguities, r.Notes, r.Status = []string{}, nil, schemas.WorstOf(codes)
	for _, code := range slices.Sorted(slices.Values(codes)) {
		if schemas.IsNote(code) {
			r.Notes = append(r.Notes, code)
		} else {
			r.Ambiguities = append(r.Ambiguities, code)
		}
	}
	b, err := schemas.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	a[bundle.ReportName] = string(b)
	return a
}

// believed are the entries that could be added to the archive of three layers
// without a contradiction: nothing else in it is about what they say.
var believed = []string{
	"effect_on_denied_target:/usr/bin/files", "exec_before_sessions:/usr/bin/files", "server_effect_between_calls:exec /usr/bin/files",
	"tool_call_effects_late:tc_4", "tool_call_effects_shared:tc_4", "tool_call_names_nothing:tc_4",
	"exec_without_tool_call:/usr/bin/files", "exec_without_tool_call:…",
	"intents_log_flooded", "intents_log_invalid:1:bad_json", "intents_log_invalid:7:bad_seq", // of a log that somebody gave to runner-correlate
	"policy_log_flooded", "policy_log_invalid:1:bad_json", "policy_log_invalid:7:bad_seq",
	"policy_session_not_finished:files", "policy_session_not_finished:tc_1",
	"policy_session_of_other_policy:files", "policy_session_of_other_policy:tc_1",
	"policy_session_reloaded:files", "policy_session_reloaded:tc_1",
	"sdk_log_flooded", "sdk_log_invalid:7:bad_seq", "sdk_log_replaced", "sdk_log_truncated", "sdk_log_writer_open_at_end", "sdk_log_written_after_end",
	"tool_call_effects_outside_request:tc_4",
	"tool_call_targets_unknown:tc_2",
	"tool_calls_overlap:tc_4",
}

// Every kind of ambiguity, about everything that could be meant, added to a list
// without it: what the layers contradict is refused.
func TestEveryFalseCode(t *testing.T) {
	r, err := schemas.ParseReport([]byte(layered()[bundle.ReportName]))
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(r.Ambiguities, r.Notes)
	ids := []string{"tc_1", "tc_2", "tc_3", "tc_4", "tc_9", "tc_none"}
	var taken []string
	for _, k := range schemas.Ambiguities() {
		var entries []string
		switch k.Arg {
		case schemas.ArgNone:
			entries = []string{k.Code, k.Code + ":x"}
		case schemas.ArgLine:
			entries = []string{schemas.LineCode(k.Code, 1, "bad_json"), schemas.LineCode(k.Code, 7, "bad_seq"), schemas.LineCode(k.Code, 7, "bad_luck")}
		case schemas.ArgPath:
			entries = []string{k.Code + ":/usr/bin/files", k.Code + ":/usr/bin/nowhere", k.Code + ":" + schemas.MoreCodes, k.Code + ":"}
		case schemas.ArgEffect:
			entries = []string{k.Code + ":exec /usr/bin/files", k.Code + ":read /usr/bin/nowhere", k.Code + ":failed-read /work/b", k.Code + ":" + schemas.MoreCodes, k.Code}
		case schemas.ArgName:
			entries = []string{k.Code + ":files", k.Code + ":tc_1", k.Code + `:a\q`, k.Code}
		case schemas.ArgID:
			for _, id := range ids {
				entries = append(entries, k.Code+":"+id)
			}
			entries = append(entries, k.Code)
		}
		for _, entry := range entries {
			if slices.Contains(all, entry) {
				continue
			}
			code, res := check(t, withCodes(t, append(slices.Clone(all), entry)).digest(t).tar(t))
			if code == 0 {
				taken = append(taken, entry)
			} else if got := rules(res); !slices.Contains(got, ruleReportAmbiguity) && !slices.Contains(got, ruleReportBindings) {
				t.Errorf("%s: refused by %v", entry, got)
			}
		}
	}
	want := slices.Sorted(slices.Values(believed))
	if slices.Sort(taken); !slices.Equal(taken, want) {
		t.Errorf("believed are\n%s\nexpected\n%s", strings.Join(taken, "\n"), strings.Join(want, "\n"))
	}
}

// A decision log with holes makes a report that failed, in an archive that is valid.
func TestFailedReport(t *testing.T) {
	r, _ := schemas.ParseReport([]byte(layered()[bundle.ReportName]))
	in := withCodes(t, append(slices.Concat(r.Ambiguities, r.Notes), "policy_log_flooded")).digest(t).tar(t)
	if code, res := check(t, in, "--require", "correlation=failed"); code != 0 || res.Record.Correlation != "failed" {
		t.Errorf("exit %d, %+v", code, res.Findings)
	}
	if code, _, _ := call(in, "--require", "correlation=partial"); code != 1 {
		t.Errorf("exit %d", code)
	}
}

// More programs than are named one by one, and the entry for the rest.
func TestExecsWithoutCall(t *testing.T) {
	for _, tc := range []struct {
		paths int
		more  bool
		code  int
	}{{1, false, 0}, {64, false, 0}, {64, true, 0}, {65, false, 1}, {65, true, 1}, {3, true, 0}} {
		a := layered()
		var codes, execs []string
		for i := range tc.paths {
			path := fmt.Sprintf("/usr/bin/x%03d", i)
			a[bundle.KernelName] += kernelLine(10+i, `"event_type":4,"kind":"exec","value":"`+path+`","return_value":0,"status":"success"`)
			codes, execs = append(codes, "exec_without_tool_call:"+path), append(execs, `"`+path+`"`)
		}
		if tc.more {
			codes = append(codes, "exec_without_tool_call:…")
		}
		lines := 10 + tc.paths
		a[bundle.ReportName] = strings.Replace(a[bundle.ReportName], `"exec_without_tool_call:/usr/bin/sh"`, `"`+strings.Join(codes, `","`)+`"`, 1)
		a[bundle.SurfaceName] = strings.Replace(a[bundle.SurfaceName], `"/usr/bin/sh"]`, `"/usr/bin/sh",`+strings.Join(execs, ",")+`]`, 1)
		a[bundle.HealthName] = strings.NewReplacer("monitor_events=10", fmt.Sprintf("monitor_events=%d", lines), "agent=4", fmt.Sprintf("agent=%d", lines-6)).Replace(a[bundle.HealthName])
		if code, r := check(t, a.digest(t).tar(t)); code != tc.code {
			t.Errorf("%d programs, more=%t: exit %d, %+v", tc.paths, tc.more, code, r.Findings)
		}
	}
}
