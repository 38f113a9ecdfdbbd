package main

import (
	"context"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/schemas"
)

// hider is a policy that allows everything and hides tools by a prefix.
type hider bool

func (h hider) Decide(context.Context, *policy.Call) policy.Decision {
	return policy.Decision{Allow: true, Reason: schemas.ReasonAllowDefault}
}

func (h hider) DecideRequest(context.Context, *policy.Request) policy.Decision {
	return policy.Decision{Allow: true, Reason: schemas.ReasonAllowProtocol}
}

func (h hider) DecideRoots(any) policy.RootsDecision {
	return policy.RootsDecision{Allow: true, Reason: schemas.ReasonAllowRoots}
}
func (h hider) Hides(tool string) bool          { return bool(h) && strings.HasPrefix(tool, "hidden") }
func (h hider) CaseSmuggled(any) (string, bool) { return "", false }

func (hider) Redact(arguments any) (any, []policy.Redacted) { return arguments, nil }

func (hider) Denies() ([]string, bool) { return nil, false }
