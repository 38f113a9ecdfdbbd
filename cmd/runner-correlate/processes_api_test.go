package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// TestProcessSessions: calls of runner-proc get the numbers of their sessions, in the order of the starts; ids of another
// form stay. Its policy file is not the run's.
func TestProcessSessions(t *testing.T) {
	other := &logHealth{facts: map[string]string{"policy_digest": digestB}}
	log := "session Q 20 31 26\nallow Q 0 proc t 110-120 completed\nallow Q 1 proc:1:0 t 130-140 completed\nend Q\nsession P 20 30 25\nallow P 0 proc t 100-105 completed\nend P"
	j := world{kernel: agent, policy: log, policyLog: other}.run(t)
	var ids []string
	for _, b := range j.report.Bindings {
		ids = append(ids, b.ToolCallID)
	}
	// The last but one is a claim of somebody else's: what is named twice is told apart by nobody.
	if want := []string{"proc:0:0", "proc:1:0", "proc:1:0"}; !slices.Equal(ids, want) || !slices.Contains(j.report.Ambiguities, "tool_call_id_repeated:proc:1:0") {
		t.Errorf("%q %q, expected %q", ids, j.report.Ambiguities, want)
	}
	if slices.ContainsFunc(j.report.Ambiguities, func(c string) bool { return strings.HasPrefix(c, schemas.AmbiguitySessionOtherPolicy) }) {
		t.Errorf("%q", j.report.Ambiguities)
	}
	if at := slices.Index(j.health.Notes, "s4_process_api: sessions=2"); at < 1 || !strings.HasPrefix(j.health.Notes[at-1], "s4_tool_policy") {
		t.Errorf("notes %q", j.health.Notes)
	}
	mixed := world{kernel: agent, policy: log + "\n" + one, policyLog: other}.run(t)
	if !slices.Contains(mixed.report.Ambiguities, "policy_session_of_other_policy:srv-S") || !slices.Contains(mixed.health.Notes, "s4_process_api: sessions=2") {
		t.Errorf("%q %q", mixed.report.Ambiguities, mixed.health.Notes)
	}
	lines := strings.SplitAfter(string(decisionLog(t, log)), "\n")
	lines[1] = strings.Replace(lines[1], schemas.LogSourceProc, schemas.LogSource, 1)
	if j := join(t, world{kernel: agent}.stream(t), []byte(strings.Join(lines, "")), nil); !slices.Contains(j.report.Ambiguities, "policy_log_invalid:2:conflict") {
		t.Errorf("a line of another tool: %q", j.report.Ambiguities)
	}
}
