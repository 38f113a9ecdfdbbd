package policy

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Trace prints how the rules decide one call, rule by rule, and the decision.
func (p *Policy) Trace(ctx context.Context, w io.Writer, c *Call) Decision {
	e := &evaluation{policy: p, call: *c, began: make(chan struct{}, 1)}
	defer func() {
		if e.cancel != nil {
			e.cancel()
		}
	}()
	d := p.Decide(ctx, c)
	if e.sound() == nil {
		for i := range p.rules {
			r := &p.rules[i]
			fmt.Fprintf(w, "  %d. %s: %s\n", i+1, r.id, e.step(ctx, r))
			if r.id == d.RuleID {
				break
			}
		}
	}
	explainDecision(w, d)
	return d
}

// step says what a rule does with the call.
func (e *evaluation) step(ctx context.Context, r *rule) string {
	if !r.speaksOf(e.call.Tool) {
		return "not about this tool"
	}
	if r.digests != nil && !slices.Contains(r.digests, e.call.Digest) {
		return "does not match: the digest of the arguments is " + e.call.Digest
	}
	for i := range r.args {
		c := &r.args[i]
		ok, err := e.condition(c, r.allow)
		switch {
		case err != nil:
			return "cannot be evaluated: the argument at " + c.at.Text + ": " + err.Error()
		case !ok:
			return "does not match: not " + c.explain(r.allow)
		}
	}
	if ok, err := e.holds(ctx, r); err != nil {
		return "cannot be evaluated: " + err.Error()
	} else if !ok {
		return "does not match: the jq program gives false"
	}
	if !r.allow {
		return "matches, and denies"
	}
	if err := e.whole(r); err != nil {
		return "matches, but denies: " + err.Error()
	}
	return "matches, and allows"
}

// TraceRequest prints how a request that is no tool call is decided.
func (p *Policy) TraceRequest(ctx context.Context, w io.Writer, r *Request) Decision {
	d := p.DecideRequest(ctx, r)
	explainDecision(w, d)
	return d
}

func explainDecision(w io.Writer, d Decision) {
	fmt.Fprintf(w, "decision: %s (%s", map[bool]string{true: "allow", false: "deny"}[d.Allow], d.Reason)
	if d.RuleID != "" {
		fmt.Fprintf(w, ", rule %s", d.RuleID)
	}
	fmt.Fprintln(w, ")")
	if d.Say != "" {
		fmt.Fprintf(w, "said to the client: %s\n", plainQuote(d.Say))
	}
	if len(d.Targets) > 0 {
		fmt.Fprintf(w, "targets: %s\n", strings.Join(d.Targets, " "))
	}
	if len(d.Checked) > 0 {
		fmt.Fprintf(w, "looked at: %s\n", strings.Join(d.Checked, " "))
	}
}
