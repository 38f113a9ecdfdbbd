package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// Archives that one rule alone refuses, of rules that are seldom broken alone.
func TestOneRule(t *testing.T) {
	const policy, sdk = bundle.PolicyName, bundle.SDKName
	checkContradictions(t, []contradiction{
		{"a reason for another decision", layered, edit(policy, "P_ALLOW_RULE", "P_DENY_RULE"), "policy.decision"},
		{"an attempt after the end", layered, edit(policy, `"input_required"`, `"completed"`), "policy.decision"},
		{"a rule that is no text", layered, edit(policy, `read-work`, `read\\q`), "policy.text"},
		{"a name that is no text", sample, edit(sdk, `"sdk_name":null`, `"sdk_name":"a\\q"`), "sdk.text"},
		{"decisions out of order", layered, swapped, "policy.order"},
		{"sessions that were not counted", layered, edit(bundle.HealthName, " sessions=1", ""), "health.note policy.decision report.bindings"},
	})
	t.Run(ruleAttestation, func(t *testing.T) {
		file, pub := foreignStatement(t)
		if _, r := check(t, sample().digest(t).tar(t), "--attestation="+file, "--public-key="+pub); strings.Join(rules(r), " ") != ruleAttestation {
			t.Errorf("rules %v", rules(r))
		}
	})
	for demand, rule := range map[string]string{"--require=kernel=absent": ruleRequire, "--assert=false": ruleAssert} {
		t.Run(rule, func(t *testing.T) {
			if _, r := check(t, sample().digest(t).tar(t), demand); strings.Join(rules(r), " ") != rule {
				t.Errorf("%s: rules %v", demand, rules(r))
			}
		})
	}
}

// foreignStatement is a signed statement about something else, and its key.
func foreignStatement(t *testing.T) (file, pub string) {
	t.Helper()
	k, err := attestation.Generate(attestation.Ed25519)
	testkit.Must(t, err)
	p, err := k.Public()
	testkit.Must(t, err)
	b, err := p.PEM()
	testkit.Must(t, err)
	e := attestation.Seal([]byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[],"predicateType":"","predicate":{}}`))
	testkit.Must(t, e.Sign(k))
	line, err := e.Line(false)
	testkit.Must(t, err)
	dir := t.TempDir()
	file, pub = filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "a.pub")
	testkit.Must(t, os.WriteFile(file, line, 0o600))
	testkit.Must(t, os.WriteFile(pub, b, 0o600))
	return file, pub
}

// swapped exchanges the first two decisions, and their bindings.
func swapped(_ *testing.T, a content) {
	l := strings.SplitAfter(a[bundle.PolicyName], "\n")
	l[0], l[1] = strings.Replace(l[1], `"seq":1`, `"seq":0`, 1), strings.Replace(l[0], `"seq":0`, `"seq":1`, 1)
	a[bundle.PolicyName] = strings.Join(l, "")
	before, rest, _ := strings.Cut(a[bundle.ReportName], `"bindings":[`)
	first, rest, _ := strings.Cut(rest, `,{"tool_call_id":"tc_2"`)
	second, rest, _ := strings.Cut(rest, `,{"tool_call_id":"tc_3"`)
	a[bundle.ReportName] = before + `"bindings":[{"tool_call_id":"tc_2"` + second + "," + first + `,{"tool_call_id":"tc_3"` + rest
}
