package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/gatepolicy"
	"github.com/runner-evidence/runner/cmd/internal/rego"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Bounds of the files of a policy in WebAssembly, in bytes.
const (
	maxWasm = 16 << 20
	maxData = 8 << 20
)

// policies are those that the flags name. All of them must allow.
type policies struct {
	all    *gatepolicy.Combined // nil: none is given
	closes []func() error
}

// readPolicies loads the policies of a call.
func readPolicies(ctx context.Context, env *tool.Env, needed bool) (p *policies, err error) {
	p = new(policies)
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	f := env.Flag
	var engines []gatepolicy.Engine
	if name := f.String("policy"); name != "" {
		y, err := gatepolicy.Open(name)
		if err != nil {
			return p, err
		}
		p.closes = append(p.closes, y.Close)
		engines = append(engines, y)
	}
	switch name := f.String("policy-wasm"); {
	case name != "":
		w, err := p.wasm(ctx, name, f.String("data"), f.String("entrypoint"))
		if err != nil {
			return p, err
		}
		engines = append(engines, w)
	case f.IsSet("data") || f.IsSet("entrypoint"):
		return p, tool.Usagef("--data and --entrypoint belong to --policy-wasm")
	}
	if line := f.String("policy-exec"); line != "" {
		errors, _ := env.Stderr.(*os.File)
		x, err := gatepolicy.NewExec(line, errors)
		if err != nil {
			return p, err
		}
		engines = append(engines, x)
	}
	if len(engines) == 0 {
		if needed {
			return p, tool.Missing("the policy", "runner-gate "+env.Command+" … --policy gate.yaml")
		}
		return p, nil
	}
	p.all, err = gatepolicy.Combine(engines...)
	return p, err
}

// wasm loads a policy that OPA compiled.
func (p *policies) wasm(ctx context.Context, name, dataName, entrypoint string) (gatepolicy.Engine, error) {
	module, err := tool.ReadFile(name, maxWasm+1)
	if err != nil {
		return nil, err
	}
	var data []byte
	if dataName != "" {
		if data, err = tool.ReadFile(dataName, maxData+1); err != nil {
			return nil, err
		}
	}
	w, err := rego.Load(ctx, module, data, rego.Options{Limits: rego.Limits{Input: gate.MaxPlan}, Entrypoint: entrypoint})
	if err != nil {
		var bad *rego.Error
		if errors.As(err, &bad) && bad.Hint != "" {
			return nil, tool.Fail(tool.ExitInput, prefixed(name, err), bad.Hint)
		}
		return nil, tool.Fail(tool.ExitInput, prefixed(name, err))
	}
	p.closes = append(p.closes, w.Close)
	return gatepolicy.NewWasm(module, data, w), nil
}

func prefixed(name string, err error) error {
	return tool.Failf(tool.ExitInput, "%s: %w", schemas.Text(name), err)
}

func (p *policies) close() {
	for _, c := range p.closes {
		c()
	}
}

// none reports whether no policy is given.
func (p *policies) none() bool { return p.all == nil }

// refs name the policies, in order.
func (p *policies) refs() []gate.PolicyRef { return p.all.Refs() }

// keys are those that the policies name.
func (p *policies) keys() (list []*attestation.PublicKey) {
	if p.all == nil {
		return nil
	}
	for _, k := range p.all.Keys() {
		list = append(list, k.PublicKey)
	}
	return list
}

// decide writes what the policies say into a plan.
func (p *policies) decide(ctx context.Context, to *gate.Plan) error {
	for i := range to.Intents {
		if to.Intents[i].Type != schemas.IntentHTTPRequest {
			continue
		}
		if b, found := p.all.Rollback(&to.Intents[i]); found {
			to.Intents[i].Rollback = b.Plan()
		}
	}
	d, needs, err := p.all.Decide(ctx, input(to, gate.Context{Stage: gate.StagePlan}))
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	to.Policies, to.Decision, to.Approvals = p.all.Refs(), *d, append([]gate.Requirement{}, needs...)
	return nil
}

// stillAllowed asks the policies again, now that it is to be done: some allow a commit only at some times of the day.
func (p *policies) stillAllowed(ctx context.Context, of *gate.Plan, now time.Time) error {
	if p.all == nil {
		return nil
	}
	now = now.UTC()
	minutes := now.Hour()*60 + now.Minute()
	d, needs, err := p.all.Decide(ctx, input(of, gate.Context{Stage: gate.StageCommit, CurrentMinutes: &minutes}))
	if err != nil {
		return err
	}
	if !d.Bundle.Allowed {
		return fmtDenied("now, at the commit", d.Bundle.Reasons)
	}
	for _, n := range needs {
		if !slices.ContainsFunc(of.Approvals, func(r gate.Requirement) bool { return r.Why == n.Why && r.Count >= n.Count }) {
			return fmtDenied("at the commit it needs an approval that the plan does not ask for", []string{n.Why})
		}
	}
	return nil
}

func sameRefs(a, b []gate.PolicyRef) bool { return slices.Equal(a, b) }

// input is what policies decide about a plan.
func input(p *gate.Plan, c gate.Context) *gate.Input {
	return &gate.Input{Context: c, RunID: p.RunID, Archive: p.Archive, Evidence: p.Evidence, Files: p.Files, Intents: p.Intents, Network: p.Network, Calls: p.Calls}
}

// planned makes the plan of an archive, with the decision of the policies.
func planned(ctx context.Context, r *recorded, pol *policies, acceptPartial bool) (*gate.Plan, []byte, error) {
	p, err := r.makePlan(acceptPartial)
	if err != nil {
		return nil, nil, err
	}
	if err := pol.decide(ctx, p); err != nil {
		return nil, nil, err
	}
	b, err := p.Bytes()
	if err != nil {
		return nil, nil, tool.Fail(tool.ExitInput, err)
	}
	return p, b, nil
}

func fmtDenied(when string, reasons []string) error {
	return &denied{when + ": " + strings.Join(reasons, "; ")}
}

// denied is gate.ErrDenied with its reason.
type denied struct{ why string }

func (d *denied) Error() string { return gate.ErrDenied.Error() + ": " + d.why }
func (d *denied) Unwrap() error { return gate.ErrDenied }
