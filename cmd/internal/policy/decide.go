package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/jsonpath"
	"github.com/runner-evidence/runner/schemas"
)

// Bounds of a decision. Whatever a client sends, a decision stays within them.
const (
	decideTime = time.Second // in all; only a hanging file system needs this long
	maxDepth   = 256         // of arguments
	maxTool    = 1024        // bytes of a tool's name
	maxStuck   = 8           // evaluations that were abandoned and still run
)

var (
	errDeep = fmt.Errorf("the arguments nest deeper than %d levels", maxDepth)
	errTool = fmt.Errorf("the name of the tool is longer than %d bytes", maxTool)
	errArgs = errors.New("the arguments are not an object")
)

// stuck counts abandoned evaluations that still run. An evaluation that hangs in the file
// system or in a single step of a program cannot be stopped. maxStuck limits how many
// there can be.
var stuck atomic.Int32

// Decide decides a call. It never panics, and it answers in bounded time: a call that
// cannot be evaluated in time is denied. The caller must have refused arguments for which
// CaseSmuggled reports a key.
func (p *Policy) Decide(ctx context.Context, c *Call) Decision {
	if stuck.Load() >= maxStuck || ctx.Err() != nil {
		return Decision{Reason: schemas.ReasonEvalTimeout, Say: say("", errTimeout), Targets: []string{}, TargetsCut: true}
	}
	e := &evaluation{policy: p, call: *c, began: make(chan struct{}, 1)}
	e.at.Store(-1)
	done := make(chan Decision, 1)
	go func() {
		d := e.decide(ctx)
		if !e.ended.CompareAndSwap(running, answered) {
			stuck.Add(-1)
		}
		done <- d
	}()
	timer := time.NewTimer(decideTime)
	defer timer.Stop()
	for {
		select {
		case d := <-done:
			return d
		case <-e.began:
			timer.Reset(2 * whenTime) // a program is stopped after half of this time
			continue
		case <-ctx.Done():
		case <-timer.C:
		}
		stuck.Add(1)
		if !e.ended.CompareAndSwap(running, givenUp) {
			stuck.Add(-1)
			return <-done
		}
		id := ""
		if i := e.at.Load(); i >= 0 {
			id = p.rules[i].id
		}
		return Decision{Reason: schemas.ReasonEvalTimeout, RuleID: id, Say: say(id, errTimeout), Targets: []string{}, TargetsCut: true}
	}
}

// States of an evaluation.
const (
	running = iota
	answered
	givenUp
)

// evaluation is one decision in progress.
type evaluation struct {
	policy *Policy
	call   Call
	at     atomic.Int32        // index of the rule that is evaluated
	ended  atomic.Int32        // running, answered, givenUp
	began  chan struct{}       // a program runs for the first time
	known  map[string]lookedUp // paths that were looked up
	timed  context.Context     // of all programs together
	cancel context.CancelFunc
	blind  bool // looks at no file
}

// decide goes through the rules. A panic in it would be a bug in this package; the call
// is still denied then.
func (e *evaluation) decide(ctx context.Context) (d Decision) {
	var r *rule
	defer func() {
		if e.cancel != nil {
			e.cancel()
		}
		if x := recover(); x != nil {
			d = e.denial(r, errors.New("the evaluation failed with an internal error"))
			d.Targets, d.Checked, d.TargetsCut = []string{}, nil, true
		}
	}()
	p, c := e.policy, &e.call
	if err := e.sound(); err != nil {
		d = e.denial(nil, err)
		e.targets(&d, nil)
		return d
	}
	for i := range p.rules {
		if r = &p.rules[i]; !r.speaksOf(c.Tool) {
			continue
		}
		if e.ended.Load() == givenUp {
			return Decision{} // its result is not used
		}
		e.at.Store(int32(i))
		ok, err := e.holds(ctx, r)
		switch {
		case err != nil:
			d = e.denial(r, err)
		case !ok:
			continue
		case r.allow && e.whole(r) != nil:
			d = Decision{Reason: schemas.ReasonDenyArguments, RuleID: r.id, Say: "policy rule " + r.id + " does not allow this call: " + e.whole(r).Error()}
		case r.allow:
			d = Decision{Allow: true, Reason: schemas.ReasonAllowRule, RuleID: r.id, Rate: r.rate}
		default:
			d = Decision{Reason: schemas.ReasonDenyRule, RuleID: r.id, Say: "policy rule " + r.id + " denies this call"}
			if r.reason != "" {
				d.Say += ": " + r.reason
			}
		}
		e.targets(&d, r)
		return d
	}
	if r = nil; p.allow {
		d = Decision{Allow: true, Reason: schemas.ReasonAllowDefault}
	} else {
		d = Decision{Reason: schemas.ReasonDenyDefault, Say: "no policy rule allows this call"}
	}
	e.targets(&d, nil)
	return d
}

// sound returns an error for calls that must not be evaluated.
func (e *evaluation) sound() error {
	if len(e.call.Tool) > maxTool {
		return errTool
	}
	switch a := e.call.Arguments.(type) {
	case nil:
		return nil
	case map[string]any:
		return jsonOnly(a, maxDepth)
	}
	return errArgs
}

// jsonOnly reports whether a value is JSON as Decode makes it, and not too deep.
func jsonOnly(v any, left int) error {
	switch x := v.(type) {
	case nil, bool, string:
	case map[string]any:
		for _, y := range x {
			if left == 0 {
				return errDeep
			}
			if err := jsonOnly(y, left-1); err != nil {
				return err
			}
		}
	case []any:
		for _, y := range x {
			if left == 0 {
				return errDeep
			}
			if err := jsonOnly(y, left-1); err != nil {
				return err
			}
		}
	default:
		s, ok := number(v)
		if !ok {
			return fmt.Errorf("a value of type %T is not JSON", v)
		}
		if len(s) > maxNumber {
			return errNumber
		}
	}
	return nil
}

func (e *evaluation) denial(r *rule, err error) Decision {
	d := Decision{Reason: schemas.ReasonEvalError}
	if errors.Is(err, errTimeout) {
		d.Reason = schemas.ReasonEvalTimeout
	}
	if r != nil {
		d.RuleID = r.id
	}
	d.Say = say(d.RuleID, err)
	if r != nil && r.reason != "" {
		d.Say += " (" + r.reason + ")"
	}
	return d
}

func say(id string, err error) string {
	if id == "" {
		return "the policy cannot be evaluated for this call: " + err.Error()
	}
	return "policy rule " + id + " cannot be evaluated for this call: " + err.Error()
}

func (r *rule) speaksOf(tool string) bool {
	for _, g := range r.tools {
		if g.match(tool) {
			return true
		}
	}
	return false
}

// holds reports whether all conditions of a rule hold.
func (e *evaluation) holds(ctx context.Context, r *rule) (bool, error) {
	if r.digests != nil && !slices.Contains(r.digests, e.call.Digest) {
		return false, nil
	}
	for i := range r.args {
		ok, err := e.condition(&r.args[i], r.allow)
		if err != nil {
			return false, fmt.Errorf("the argument at %s: %w", r.args[i].at.Text, err)
		}
		if !ok {
			return false, nil
		}
	}
	if r.when == nil {
		return true, nil
	}
	if e.timed == nil {
		stoppable, stop := context.WithCancelCause(ctx)
		e.timed, e.cancel = context.WithTimeout(stoppable, whenTime)
		e.began <- struct{}{}
		go watchMemory(e.timed, stop)
	}
	args := e.call.Arguments
	if args == nil {
		args = map[string]any{}
	}
	return r.when.holds(e.timed, map[string]any{"tool": e.call.Tool, "arguments": args, "meta": e.call.Meta})
}

// condition checks every value that the path selects. A rule that allows requires that
// the condition holds for all values in every way in which they can be read. For a rule
// that denies, one value in one reading is enough.
func (e *evaluation) condition(c *condition, allow bool) (bool, error) {
	found, holds := false, allow
	err := c.at.Each(arguments(&e.call), func(v any, present bool) error {
		if e.ended.Load() == givenUp {
			return errTimeout
		}
		ok := false
		if present {
			found = true
			var err error
			if ok, err = e.value(c, v, allow); err != nil {
				return err
			}
		}
		if allow {
			holds = holds && ok
		} else {
			holds = holds || ok
		}
		return nil
	})
	return found && holds, err
}

func arguments(c *Call) any {
	if c.Arguments == nil {
		return map[string]any{}
	}
	return c.Arguments
}

// lookedUp is the result of places for a path. A decision looks up each path only once,
// so that all rules and the targets use the same places.
type lookedUp struct {
	places []string
	err    error
}

const maxLookups = 256 // paths whose result a decision keeps

func (e *evaluation) places(s string) ([]string, error) {
	if x, ok := e.known[s]; ok {
		return x.places, x.err
	}
	dir := ""
	if e.policy.RelativeTo == e.call.Dir {
		dir = e.call.Dir
	}
	all, err := places(dir, s)
	if e.known == nil {
		e.known = map[string]lookedUp{}
	}
	if len(e.known) < maxLookups {
		e.known[s] = lookedUp{all, err}
	}
	return all, err
}

// value reports whether a condition holds for one value.
func (e *evaluation) value(c *condition, v any, allow bool) (bool, error) {
	if c.in != nil {
		return isIn(v, c.in)
	}
	if c.typed != nil {
		return c.typed.holds(v)
	}
	s, ok := v.(string)
	if !ok {
		return false, fmt.Errorf("it is %s, not a string", jsonpath.Kind(v))
	}
	if c.to != nil {
		d, err := parseDest(s)
		if err != nil {
			return false, err
		}
		return leadsTo(d, c.to, allow)
	}
	all, err := e.places(s)
	if err != nil {
		return false, err
	}
	for _, place := range all {
		if within(place, c.under) != allow {
			return !allow, nil
		}
	}
	return allow, nil
}
