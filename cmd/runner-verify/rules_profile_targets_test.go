package main

import (
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/bundle"
)

// named is layered with what calls named, the ids of rules and the policy of the sessions.
func named() content {
	a := layered()
	lines := strings.SplitAfter(a[bundle.PolicyName], "\n")
	for i, targets := range []string{`["/elsewhere"]`, `["/work/secret"]`, "", "", `["/other","example.com:80"]`} {
		if targets != "" {
			lines[i] = strings.Replace(lines[i], "}\n", `,"targets":`+targets+"}\n", 1)
		}
	}
	a[bundle.PolicyName] = strings.Join(lines, "")
	const digest = "policy=" + testDigest + `",`
	a[bundle.HealthName] = strings.NewReplacer(
		`blocked=1 `+digest, `blocked=1 `+digest+`"s4_network_rules: 1=own; 2=no-net",`, `observed `+digest, `observed `+digest+`"s4_file_rules: 1=no-shadow",`,
		`refused=1",`, `refused=1","s4_tool_policy: policies=1 `+digest).Replace(a[bundle.HealthName])
	return a
}

// What decisions name is compared with what the report says was done.
func TestTargets(t *testing.T) {
	const policy, report, health = bundle.PolicyName, bundle.ReportName, bundle.HealthName
	const outside, unknown = `"tool_call_effects_outside_request:tc_1",`, `,"tool_call_targets_unknown:tc_4"`
	const bindings, codes = "report.bindings", "report.ambiguities"
	both := func(edits ...func(*testing.T, content)) func(*testing.T, content) {
		return func(t *testing.T, a content) {
			for _, e := range edits {
				e(t, a)
			}
		}
	}
	checkContradictions(t, []contradiction{
		{"as it is", named, func(*testing.T, content) {}, ""},
		{"a denied call that named something else", named, edit(policy, `"/work/secret"`, `"/work/other"`), bindings},
		{"a denied call that named a directory above", named, edit(policy, `"/work/secret"`, `"/work"`), ""},
		{"a call that named it", named, edit(policy, `"/elsewhere"`, `"/work"`), codes},
		{"a call that named it, without the code", named, both(edit(policy, `"/elsewhere"`, `"/work"`), edit(report, outside, "")), ""},
		{"effects outside without the code", named, edit(report, outside, ""), codes},
		{"effects outside, and more targets", named, edit(policy, `"targets":["/elsewhere"]`, `"targets":["/elsewhere"],"targets_cut":true`), codes},
		{"a host that may be it, without the code", named, edit(report, unknown, ""), codes},
		{"a host, and the address itself", named, edit(policy, `"/other","example.com:80"`, `"127.0.0.1:80","example.com:80"`), codes},
		{"targets out of order", named, edit(policy, `"/other","example.com:80"`, `"example.com:80","/other"`), "policy.decision"},
		{"a target twice", named, edit(policy, `"/other",`, `"/other","/other",`), "policy.decision"},
		{"an empty target", named, edit(policy, `"/elsewhere"`, `""`), "line.schema " + bindings},
		{"no target in the list", named, edit(policy, `["/elsewhere"]`, `[]`), "line.schema " + bindings},
		{"nothing was cut", named, edit(policy, `"targets":["/elsewhere"]`, `"targets":["/elsewhere"],"targets_cut":false`), "line.schema " + bindings},
		{"a target that is no text", named, edit(policy, `"/elsewhere"`, `"/els\\q"`), "policy.text"},
		{"too many bytes", named, edit(policy, `"/elsewhere"`, `"/`+strings.Repeat("x", 1<<14)+`"`), "policy.decision"},
		{"targets of another proxy", named, edit(policy, `"tool_call_id_source":"callId","outcome":"completed","reason_code":"P_ALLOW_RULE","rule_id":"read-work","policy_digest":"`+testDigest+`","targets":["/els`,
			`"outcome":"completed","targets":["/els`), "policy.decision policy.order " + bindings},
		{"targets without the note", named, edit(health, `"s4_tool_policy: policies=1 policy=`+testDigest+`",`, ""), "health.note"},
		{"more policies than sessions", named, edit(health, `policies=1 policy=`+testDigest, "policies=2"), "health.note " + codes},
		{"another policy than that of the decisions", named, edit(health, `policies=1 policy=sha256:0`, "policies=1 policy=sha256:1"), "health.note " + codes},
		{"one policy without its digest", named, edit(health, ` policy=`+testDigest+`","s5`, `","s5`), "health.note"},
		{"no policy", named, edit(health, `policies=1 policy=`+testDigest, "policies=0"), "health.note"},
	})
}

// Each rule that refused something has an id.
func TestRuleIDs(t *testing.T) {
	const health, network, files = bundle.HealthName, `"s4_network_rules: 1=own; 2=no-net",`, `"s4_file_rules: 1=no-shadow",`
	checkContradictions(t, []contradiction{
		{"without ids", named, edit(health, network, ""), ""},
		{"a rule that does not exist", named, edit(health, "2=no-net", "2=no-net; 3=other"), "health.note"},
		{"a rule without an id", named, edit(health, "; 2=no-net", ""), "health.note"},
		{"ids out of order", named, edit(health, "1=own; 2=no-net", "2=no-net; 1=own"), "health.note"},
		{"an id that no rule has", named, edit(health, "=no-net", "=no net"), "health.note"},
		{"a number that no rule has", named, edit(health, "1=no-shadow", "0=no-shadow; 1=x"), "health.note"},
		{"no file rules", named, edit(health, `"s4_file_policy: rules=1 blocked=1 mechanism=lsm evidence=observed policy=`+testDigest+`",`, ""), "health.note"},
		{"out of place", named, edit(health, network+`"s4_file`, `"s4_file`), ""},
	})
}

// Which policy file the proxies decided by can be demanded; what is not known is not met.
func TestRequireToolPolicy(t *testing.T) {
	for _, c := range []struct {
		make   func() content
		demand string
		code   int
	}{
		{named, "policy=present", 0},
		{named, "policy=" + testDigest, 0},
		{named, "policy=sha256:" + strings.Repeat("0", 64), 1},
		{named, "policy=absent", 1},
		{layered, "policy=present", 0},
		{layered, "policy=" + testDigest, 1}, // of before: which policy the sessions had is not known
		{named, "policy=sha256:0", 2},
		{named, "policy=enforced", 2},
	} {
		if code, out, errs := call(c.make().digest(t).tar(t), "--require", c.demand); code != c.code {
			t.Errorf("%s: exit %d, want %d: %s%s", c.demand, code, c.code, out, errs)
		}
	}
}
