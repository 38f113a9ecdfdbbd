package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
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
		key: e.Policy, values: []string{policyEnforced, policyNone}, pattern: pattern.New(`^sha256:[0-9a-f]{64}$`),
		form:  policyEnforced + "|" + policyNone + "|sha256:HEX",
		is:    func(r *verdict.Report) string { return enforcedPolicy(r.Record, e.Note) },
		holds: func(value, is string) bool { return value == is || value == policyEnforced && is != policyNone },
	}
}

// toolPolicyDemand is the demand that a proxy decided, and by which policy file.
func toolPolicyDemand() demand {
	return demand{
		key: schemas.LayerPolicy, values: []string{schemas.LayerPresent, schemas.LayerAbsent}, pattern: pattern.New(`^sha256:[0-9a-f]{64}$`),
		form: schemas.LayerPresent + "|" + schemas.LayerAbsent + "|sha256:HEX",
		is: func(r *verdict.Report) string {
			if r.Record.ToolPolicy != "" {
				return r.Record.ToolPolicy
			}
			return r.Record.PolicyLayer
		},
		holds: func(value, is string) bool {
			return value == is || value == schemas.LayerPresent && is != schemas.LayerAbsent
		},
	}
}

// toolPolicy is the digest of the one policy file by which all decisions were made, "" where that
// is not known: sessions had several, another proxy decided, or decisions may be missing.
func (v *verifier) toolPolicy() string {
	other := slices.ContainsFunc(v.policy.list, func(d decision) bool { return !d.timed })
	missing := slices.ContainsFunc(v.report.Ambiguities, func(code string) bool {
		a, err := schemas.ParseCode(code)
		return err == nil && a.Layer != nil && a.Layer.Name == schemas.LayerPolicy && a.Gap
	})
	if !v.writtenByRunner() || other || missing {
		return ""
	}
	return v.noteFields(schemas.NoteToolPolicy)[schemas.KeyPolicy]
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
