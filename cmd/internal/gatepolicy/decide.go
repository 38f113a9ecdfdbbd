package gatepolicy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/schemas"
)

// decideTime bounds all of a decision.
const decideTime = 5 * time.Minute

// Reasons of decisions. Those that end with a colon have a name after it.
const (
	reasonRule        = "denied_by_rule:"
	reasonDefault     = "denied_by_default"
	reasonRequired    = "required:"
	reasonError       = "policy_error:"
	reasonURLPath     = "url_path_not_plain"
	reasonUndecided   = "not_decided"
	reasonBundle      = "denied_by_bundle"
	reasonPolicy      = "denied_by_policy"
	reasonApproval    = "approval_by_rule:"
	reasonApprovalAll = "approval_by_default"
)

// Decide decides about an input. The error is that of the context, or an input that is none.
func (p *Policy) Decide(ctx context.Context, in *gate.Input) (*gate.Decision, []gate.Requirement, error) {
	s, err := views(in)
	if err != nil {
		return nil, nil, err
	}
	p.asking.Lock()
	defer p.asking.Unlock()
	timed, cancel := context.WithTimeoutCause(ctx, decideTime, fmt.Errorf("the decision takes longer than %s", decideTime))
	defer cancel()
	e := &evaluation{policy: p, ctx: timed, asked: map[string]gate.Requirement{}}
	e.out.version = p.version
	for c := range s {
		for i := range s[c] {
			e.out.items[c] = append(e.out.items[c], e.item(&s[c][i]))
		}
	}
	e.whole(in)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	return e.out.decision(s), requirements(e.asked), nil
}

// evaluation is one decision in progress.
type evaluation struct {
	policy *Policy
	ctx    context.Context
	out    outcome
	asked  map[string]gate.Requirement // by why
	ended  bool                        // an error of the machine: nothing more is decided
}

// item finds the first rule that an item is one of.
func (e *evaluation) item(v *view) verdict {
	if e.ended || e.timeOver() {
		return verdict{reasons: []string{reasonUndecided}}
	}
	if v.never != "" {
		return verdict{reasons: []string{v.never}}
	}
	for i := range e.policy.rules {
		x := &e.policy.rules[i]
		if x.about&v.class == 0 || slices.ContainsFunc(x.conds, func(holds condition) bool { return !holds(v) }) {
			continue
		}
		if x.web != nil {
			if v.web == nil || v.web.method == "" {
				continue
			}
			if v.web.path == nil {
				return verdict{rule: x.id, reasons: []string{reasonURLPath}}
			}
			if !slices.ContainsFunc(x.web, func(g glob) bool { return g.match(*v.web.path) }) {
				continue
			}
		}
		if x.when != nil {
			is, err := e.ask(x.when, v.item)
			if err != nil {
				reason := e.failed(fmt.Sprintf("rule %s, %s %d", x.id, v.class, v.index), err)
				return verdict{rule: x.id, reasons: []string{reason}}
			}
			if !is {
				continue
			}
		}
		return e.apply(x.does, x)
	}
	return e.apply(e.policy.byDefault, nil)
}

// timeOver reports whether the decision has taken too long, and denies it then.
func (e *evaluation) timeOver() bool {
	if e.ctx.Err() == nil {
		return false
	}
	e.failed("in all", context.Cause(e.ctx))
	return true
}

// apply is what an action makes of an item; x is the rule, nil for the default.
func (e *evaluation) apply(does action, x *rule) (v verdict) {
	denied, asked, why, count, by := reasonDefault, reasonApprovalAll, "default", 0, []string(nil)
	if x != nil {
		v.rule = x.id
		denied, asked, why, count, by = reasonRule+x.id, reasonApproval+x.id, "rule "+x.id, x.count, x.by
	}
	switch does {
	case actAllow:
		v.allowed = true
	case actApprove:
		v.allowed, v.approval, v.approvals = true, true, []string{asked}
		e.asked[why] = e.policy.requirementOf(why, count, by)
	default:
		v.reasons = []string{denied}
	}
	return v
}

// ask asks a program about a value.
func (e *evaluation) ask(p *program, value any) (bool, error) {
	b, err := schemas.Marshal(value)
	if err != nil {
		return false, fault("what it is asked about is not JSON: " + clip(err.Error()))
	}
	return p.holds(e.ctx, b)
}

// failed denies the whole, and returns the reason.
func (e *evaluation) failed(where string, err error) string {
	reason := reasonError + where + ": " + clip(err.Error())
	e.out.denied = append(e.out.denied, reason)
	if is := new(fault); !errors.As(err, is) {
		e.ended = true
	}
	return reason
}

// whole asks what must be true of the whole input.
func (e *evaluation) whole(in *gate.Input) {
	for i := range e.policy.require {
		x := &e.policy.require[i]
		if e.ended || e.timeOver() {
			return
		}
		is, err := e.ask(x.that, in)
		switch {
		case err != nil:
			e.failed("requirement "+x.id, err)
		case !is:
			e.out.denied = append(e.out.denied, reasonRequired+x.id)
		}
	}
}

// requirements are those of a decision, sorted by why.
func requirements(asked map[string]gate.Requirement) []gate.Requirement {
	list := []gate.Requirement{}
	for _, q := range asked {
		list = append(list, q)
	}
	return unite(list)
}
