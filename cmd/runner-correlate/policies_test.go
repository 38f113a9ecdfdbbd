package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// TestRuleIDs: a note has the ids of the rules, where the capture reports them; a rule that refused something
// must have one.
func TestRuleIDs(t *testing.T) {
	for i, code := range []string{"s4_network_rules", "s4_file_rules"} {
		e := schemas.Enforcements[i]
		enforced := enforcedRules(e)
		enforced.facts[e.IDs] = "1=own 2=none.of_your-business"
		j := world{kernel: agent, capture: enforced}.run(t)
		at := slices.Index(j.health.Notes, code+": 1=own; 2=none.of_your-business")
		if at < 1 || !strings.HasPrefix(j.health.Notes[at-1], e.Note.Code+":") {
			t.Errorf("notes %q", j.health.Notes)
		}
		for fact, want := range map[string]string{
			"1=own": "rule 2, which is not in " + e.IDs, "": "rule 2, which is not in " + e.IDs, "2=b 1=a": "in the order of the numbers", "1=a 3=b 2=c": "in the order of the numbers",
			"1=a  2=b": "NUMBER=ID", "1=a 2=b c": "NUMBER=ID", "0=x 2=b": "NUMBER=ID", "2=a 3=b": "of rule 3, and " + e.Rules + "=2", "2=a\\nb": "NUMBER=ID",
		} {
			wantRefused(t, enforced, func(c *schemas.StageHealth) { c.Facts[e.IDs] = fact }, want)
		}
	}
}

// TestToolPolicy: a note says by which policy files the proxies decided, also those that decided nothing.
func TestToolPolicy(t *testing.T) {
	for policy, note := range map[string]string{
		one: "s4_tool_policy: policies=1 policy=" + digestA, "session S 20 30 25\nend S": "s4_tool_policy: policies=1 policy=" + digestA, "": "",
		"foreign x t allow": "",
	} {
		j := world{kernel: agent, policy: policy}.run(t)
		at := slices.IndexFunc(j.health.Notes, func(n string) bool { return strings.HasPrefix(n, "s4_tool_policy") })
		if note == "" && at >= 0 || note != "" && (at < 1 || j.health.Notes[at] != note || !strings.HasPrefix(j.health.Notes[at-1], "s4_policy_capture")) {
			t.Errorf("%q: notes %q", policy, j.health.Notes)
		}
	}
}

// TestDecidedByAnother: a decision by another policy than the one that its session has by then contradicts the log.
func TestDecidedByAnother(t *testing.T) {
	for _, kind := range []string{schemas.LogDecision, schemas.LogRequestDecided} {
		lines := strings.SplitAfter(string(decisionLog(t, strings.Replace(one, "end S", "request S 0 ping 205-300\nend S", 1))), "\n")
		for i, l := range lines {
			if strings.Contains(l, kind) {
				lines[i] = strings.Replace(l, digestA, digestB, 1)
			}
		}
		codes := world{kernel: agent, policy: strings.Join(lines, "")}.run(t).report.Ambiguities
		if !slices.ContainsFunc(codes, func(c string) bool { return strings.HasSuffix(c, ":conflict") }) {
			t.Errorf("%s: %q", kind, codes)
		}
	}
}
