package main

import (
	"bufio"
	"context"
	"fmt"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// planBegins is how each plan begins.
const planBegins = `{"schema":"` + schemas.SchemaGatePlan + `"`

// plan makes the plan of an archive.
func plan(ctx context.Context, env *tool.Env) error {
	if err := env.NotEmpty("o", "policy", "policy-wasm", "policy-exec", "data", "entrypoint"); err != nil {
		return err
	}
	file, err := env.One("the archive", "runner-gate plan run.tar.gz --policy gate.yaml")
	if err != nil {
		return err
	}
	if err := env.Outputs(tool.Output{Flag: "o", What: "a plan of runner-gate", Ours: tool.Begins(planBegins)}); err != nil {
		return err
	}
	pol, err := readPolicies(ctx, env, true)
	if err != nil {
		return err
	}
	defer pol.close()
	r, err := open(ctx, env, file)
	if err != nil {
		return err
	}
	defer r.close()
	p, b, err := planned(ctx, r, pol, env.Flag.Bool("accept-partial"))
	if err != nil {
		return err
	}
	if !p.Evidence.Complete && !p.AcceptPartial {
		for _, d := range p.Evidence.Doubts {
			env.Warnf("%s", d)
		}
		hints := []string{"look at it with runner-show, then, if you accept that, add --accept-partial"}
		if r.box == nil {
			hints = append([]string{"let the command work in a box: runner-exec --archive run.tar.gz -- runner-box --base DIR -- COMMAND"}, hints...)
		}
		return tool.Fail(tool.ExitNo, fmt.Errorf("%s: the evidence is not complete or not clean: there is no plan", schemas.Text(file)),
			hints...)
	}
	if name := env.Flag.String("o"); name != "" {
		if err := tool.WriteFile(name, tool.Bytes(b)); err != nil {
			return err
		}
	}
	if err := printPlan(env, p, b); err != nil {
		return err
	}
	if len(p.Refused()) > 0 {
		return tool.Status(tool.ExitNo)
	}
	return nil
}

// show prints a plan that was made.
func show(_ context.Context, env *tool.Env) error {
	file, err := env.One("the plan", "runner-gate show plan.json")
	if err != nil {
		return err
	}
	p, b, _, err := readPlan(file)
	if err != nil {
		return err
	}
	return printPlan(env, p, b)
}

// readPlan reads a plan, and the digest of its file.
func readPlan(name string) (*gate.Plan, []byte, string, error) {
	b, err := tool.ReadFile(name, gate.MaxPlan)
	if err != nil {
		return nil, nil, "", err
	}
	p, digest, err := gate.ParsePlan(b)
	if err != nil {
		return nil, nil, "", tool.Failf(tool.ExitInput, "%s: %w", schemas.Text(name), err)
	}
	return p, b, digest, nil
}

// printPlan prints a plan for people, or as it is.
func printPlan(env *tool.Env, p *gate.Plan, b []byte) error {
	w := bufio.NewWriter(env.Stdout)
	switch {
	case env.Flag.Bool("json"):
		w.Write(b)
	case !env.Flag.Bool("q"):
		(&text{w: w}).plan(p, schemas.DigestOf(b))
	}
	if err := w.Flush(); err != nil {
		return tool.CannotWrite("standard output", err)
	}
	return nil
}
