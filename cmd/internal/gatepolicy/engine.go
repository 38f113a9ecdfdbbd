package gatepolicy

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/gate"
)

// Engine decides plans. The same input gives the same decision.
type Engine interface {
	// Ref names the policy.
	Ref() gate.PolicyRef
	// Decide decides about an input, and says who has to approve. What the policy gets wrong is a denial. The error is that
	// of the context, or an input that is none.
	Decide(ctx context.Context, in *gate.Input) (*gate.Decision, []gate.Requirement, error)
}

// Combined are several policies, of which each must allow.
type Combined struct{ engines []Engine }

// errNoPolicy is of a call without policies: nothing would be asked.
var errNoPolicy = errors.New("there is no policy, expected at least one")

// Combine joins policies, in order. Without one it is an error.
func Combine(engines ...Engine) (*Combined, error) {
	if len(engines) == 0 {
		return nil, errNoPolicy
	}
	return &Combined{slices.Clone(engines)}, nil
}

// Refs name the policies, in order.
func (c *Combined) Refs() (list []gate.PolicyRef) {
	for _, e := range c.engines {
		list = append(list, e.Ref())
	}
	return list
}

// Close ends the processes of all policies.
func (c *Combined) Close() error {
	for _, e := range c.engines {
		if p, is := e.(io.Closer); is {
			p.Close()
		}
	}
	return nil
}

// Keys are those of all people who may approve by one of the policies, each once.
func (c *Combined) Keys() (list []Key) {
	for _, e := range c.engines {
		if p, is := e.(*Policy); is {
			list = append(list, p.Keys()...)
		}
	}
	slices.SortStableFunc(list, func(a, b Key) int { return strings.Compare(a.String(), b.String()) })
	return slices.CompactFunc(list, func(a, b Key) bool { return a.String() == b.String() })
}

// Decide asks all policies. An item is allowed if each policy allows it, and needs the approvals that any of them asks for.
func (c *Combined) Decide(ctx context.Context, in *gate.Input) (*gate.Decision, []gate.Requirement, error) {
	var all *gate.Decision
	versions, needs := []string{}, []gate.Requirement{}
	for _, e := range c.engines {
		d, more, err := e.Decide(ctx, in)
		if err != nil {
			return nil, nil, err
		}
		versions = append(versions, d.PolicyVersion)
		needs = append(needs, c.byPeople(more)...)
		if all == nil {
			all = d
			continue
		}
		join(all, d)
	}
	all.PolicyVersion = strings.Join(versions, "+")
	return all, unite(needs), nil
}

// byPeople gives requirements of policies that know no keys the keys and the thresholds of those that do.
func (c *Combined) byPeople(needs []gate.Requirement) (list []gate.Requirement) {
	for _, q := range needs {
		found := false
		for _, e := range c.engines {
			if p, is := e.(*Policy); is && len(p.keys) > 0 && strings.HasPrefix(q.Why, whyPolicy) {
				list, found = append(list, p.requirementOf(q.Why, 0, nil)), true
			}
		}
		if !found {
			list = append(list, q)
		}
	}
	return list
}

// join adds the decision of another policy about the same input.
func join(all, more *gate.Decision) {
	b := &all.Bundle
	b.Allowed = b.Allowed && more.Bundle.Allowed
	b.RequiresApproval = b.RequiresApproval || more.Bundle.RequiresApproval
	b.Reasons = set(append(b.Reasons, more.Bundle.Reasons...))
	for _, lists := range [][2][]gate.ItemDecision{{all.Files, more.Files}, {all.Intents, more.Intents}, {all.Calls, more.Calls}} {
		for i := range lists[0] {
			a, b := &lists[0][i], &lists[1][i]
			a.Rule = ruleOf(a.Rule, a.Allowed, a.RequiresApproval, b.Rule, b.Allowed, b.RequiresApproval)
			a.Allowed, a.RequiresApproval = a.Allowed && b.Allowed, a.RequiresApproval || b.RequiresApproval
			a.Reasons, a.ApprovalReasons = set(append(a.Reasons, b.Reasons...)), set(append(a.ApprovalReasons, b.ApprovalReasons...))
		}
	}
	for i := range all.Network {
		a, b := &all.Network[i], &more.Network[i]
		a.Rule = ruleOf(a.Rule, a.Allowed, a.RequiresApproval, b.Rule, b.Allowed, b.RequiresApproval)
		a.Allowed, a.RequiresApproval = a.Allowed && b.Allowed, a.RequiresApproval || b.RequiresApproval
		a.Reasons = set(append(a.Reasons, b.Reasons...))
	}
}

// ruleOf is the rule that decided: of the first policy that denies, else of the first that asks for an approval.
func ruleOf(a string, aAllowed, aAsks bool, b string, bAllowed, bAsks bool) string {
	if aAllowed && !bAllowed || aAllowed == bAllowed && !aAsks && bAsks || a == "" && aAllowed == bAllowed && aAsks == bAsks {
		return b
	}
	return a
}
