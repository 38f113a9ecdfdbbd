package gatepolicy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/schemas"
)

// Bounds of a policy that is no file of rules.
const (
	externalTime = 30 * time.Second
	maxAnswer    = 32 << 20 // bytes
)

// whyPolicy begins the requirements of policies that know no keys.
const whyPolicy = "policy "

// Evaluator evaluates a policy over an input: JSON goes in, and the decision comes out.
type Evaluator interface {
	Eval(ctx context.Context, input []byte) ([]byte, error)
}

// External is a policy that gets the input as JSON, and gives its decision as JSON.
type External struct {
	ref       gate.PolicyRef
	evaluator Evaluator
	bound     time.Duration
}

// NewWasm is a policy in WebAssembly with its data, nil for none. The evaluator was loaded with both.
func NewWasm(wasm, data []byte, e Evaluator) *External {
	x := &External{ref: gate.PolicyRef{Kind: gate.PolicyWasm, Digest: schemas.DigestOf(wasm)}, evaluator: e, bound: externalTime}
	if data != nil {
		x.ref.Data = schemas.DigestOf(data)
	}
	return x
}

// Ref names the policy.
func (x *External) Ref() gate.PolicyRef { return x.ref }

// Decide asks the policy. An answer that is an error, too late, or no decision is a denial.
func (x *External) Decide(ctx context.Context, in *gate.Input) (*gate.Decision, []gate.Requirement, error) {
	s, err := views(in)
	if err != nil {
		return nil, nil, err
	}
	input, err := schemas.Marshal(in)
	if err != nil {
		return nil, nil, err
	}
	b, err := x.eval(ctx, input)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	var o *outcome
	if err == nil {
		o, err = readAnswer(s, b)
	}
	if err != nil {
		o = undecided(s, reasonError+x.ref.Kind+": "+err.Error())
	}
	if o.version == "" {
		o.version = versionOf(x.ref.Digest)
	}
	d := o.decision(s)
	needs := []gate.Requirement{}
	if d.Bundle.RequiresApproval {
		needs = append(needs, gate.Requirement{Why: whyPolicy + x.ref.Kind, Count: 1, Keys: []string{}})
	}
	return d, needs, nil
}

// eval asks the evaluator in bounded time. A panic in it is an error.
func (x *External) eval(ctx context.Context, input []byte) (b []byte, err error) {
	late := fmt.Errorf("it takes longer than %s", x.bound)
	timed, cancel := context.WithTimeoutCause(ctx, x.bound, late)
	defer cancel()
	defer func() {
		if recover() != nil {
			b, err = nil, errors.New("it failed with an internal error")
		}
	}()
	b, err = x.evaluator.Eval(timed, input)
	switch {
	case timed.Err() != nil:
		return nil, late
	case err == nil && len(b) > maxAnswer:
		return nil, errLong
	}
	return b, err
}

var errLong = fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)

// undecided is the outcome of a policy that gave no decision.
func undecided(s *subjects, why string) *outcome {
	o := &outcome{denied: []string{why}}
	for c := range s {
		for range s[c] {
			o.items[c] = append(o.items[c], verdict{reasons: []string{reasonUndecided}})
		}
	}
	return o
}
