package main

import (
	"regexp"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// What a requirement about rules for the whole run can demand, besides the digest of the policy
// file that they are from.
const (
	policyEnforced = "enforced" // by whatever file
	policyNone     = "none"
)

// policyDemand is the demand that rules of one kind were enforced, or were not.
func policyDemand(e *schemas.Enforcement) demand {
	return demand{
		key: e.Policy, values: []string{policyEnforced, policyNone}, pattern: regexp.MustCompile(`^sha256:[0-9a-f]{64}$`),
		form:  policyEnforced + "|" + policyNone + "|sha256:HEX",
		is:    func(r *verdict.Report) string { return enforcedPolicy(r.Record, e.Note) },
		holds: func(value, is string) bool { return value == is || value == policyEnforced && is != policyNone },
	}
}

// enforcedPolicy is the digest of the policy file whose rules a note says were enforced.
func enforcedPolicy(r *verdict.Record, note *schemas.Note) string {
	for _, text := range r.Notes {
		if v, err := note.Parse(text); err == nil {
			digest, _ := v.Get(schemas.KeyPolicy)
			return digest
		}
	}
	return policyNone
}
