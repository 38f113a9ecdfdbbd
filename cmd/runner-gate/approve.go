package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Times of an approval.
const (
	defaultExpires = 24 * time.Hour
	maxExpires     = 366 * 24 * time.Hour
)

// approve signs a plan.
func approve(_ context.Context, env *tool.Env) error {
	if err := env.NotEmpty("plan", "key", "o", "actor", "comment"); err != nil {
		return err
	}
	if err := env.NoOperands(); err != nil {
		return err
	}
	const example = "runner-gate approve --plan plan.json --key me.pem -o approval.jsonl"
	if env.Flag.String("plan") == "" {
		return tool.Missing("--plan", example)
	}
	if env.Flag.String("key") == "" {
		return tool.Missing("--key", example)
	}
	if err := env.Outputs(tool.Output{Flag: "o", What: "an approval", Ours: attestation.IsFile}); err != nil {
		return err
	}
	k, err := attestation.ReadPrivate(env, env.Flag.String("key"))
	if err != nil {
		return err
	}
	p, _, digest, err := readPlan(env.Flag.String("plan"))
	if err != nil {
		return err
	}
	line, err := signed(env, p, digest, k, env.Flag.Bool("deny"), signer{env.Flag.String("actor"), env.Flag.String("comment")})
	if err != nil {
		return err
	}
	name := env.Flag.String("o")
	if name == "" {
		name = "-"
	}
	return env.WriteOutput(name, tool.Bytes(line))
}

// signer is what a person says of themselves.
type signer struct{ actor, comment string }

// signed is the line of an approval.
func signed(env *tool.Env, p *gate.Plan, digest string, k *attestation.PrivateKey, deny bool, by signer) ([]byte, error) {
	verdict := gate.Approve
	if deny {
		verdict = gate.Deny
	}
	if refused := p.Refused(); !deny && len(refused) > 0 {
		return nil, tool.Fail(tool.ExitNo, fmt.Errorf("%w: nobody can approve it: %s", gate.ErrDenied, refused[0]), "runner-gate show has all of it; --deny signs a refusal")
	}
	public, err := k.Public()
	if err != nil {
		return nil, tool.Fail(tool.ExitIO, err)
	}
	for _, r := range p.Approvals {
		if len(r.Keys) > 0 && !slices.Contains(r.Keys, public.String()) {
			env.Warnf("%s does not count %s", r.Why, public)
		}
	}
	expires, err := env.Duration("expires")
	if err != nil || expires == 0 || expires > maxExpires {
		return nil, tool.BadValue("expires", env.Flag.Duration("expires").String(), "a duration above 0, at most a year")
	}
	now := time.Now()
	a := gate.NewApproval(p, digest, verdict, public, now, now.Add(expires))
	a.Actor, a.Comment = schemas.Text(by.actor), schemas.Text(by.comment)
	e, err := a.Sign(k)
	if err != nil {
		return nil, tool.Fail(tool.ExitIO, err)
	}
	line, err := e.Line(false)
	if err != nil {
		return nil, tool.Fail(tool.ExitIO, err)
	}
	env.Sayf("%s: %s of run %s, by %s until %s", verdict, digest, p.RunID, public, a.Expires)
	return line, nil
}

// readApprovals reads all envelopes of files, and checks each: one that does not fit is an error, and none is passed over.
func readApprovals(names []string, p *gate.Plan, digest string, keys []*attestation.PublicKey, now time.Time) (list []*gate.Approval, err error) {
	for _, name := range names {
		b, err := tool.ReadFile(name, attestation.MaxFile)
		if err != nil {
			return nil, err
		}
		envelopes, err := attestation.Parse(b)
		if err != nil {
			return nil, tool.Failf(tool.ExitInput, "%s: %w", schemas.Text(name), err)
		}
		for _, e := range envelopes {
			a, err := gate.ReadApproval(e, p, digest, keys, now)
			if err != nil {
				var hints []string
				if len(keys) == 0 {
					hints = []string{"no key counts yet: name those of the people who may approve, --public-key KEY.pub, or approvals.keys in a policy"}
				}
				return nil, tool.Fail(tool.ExitNo, fmt.Errorf("%s: %w", schemas.Text(name), err), hints...)
			}
			list = append(list, a)
		}
	}
	return list, nil
}
