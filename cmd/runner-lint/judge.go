package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/runner-evidence/runner/cmd/internal/assertion"
	"github.com/runner-evidence/runner/cmd/internal/pack"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// judge asks the rules of packs about one archive.
type judge struct {
	documents assertion.Documents
	blind     *assertion.Blindness
	signals   map[string]schemas.SignalDetail
}

// all are the results of all rules, in the order of the packs. Programs run at the same time: each has a
// process of its own.
func (j *judge) all(ctx context.Context, packs []*pack.Pack) ([]schemas.LintResult, error) {
	var out []schemas.LintResult
	var wait sync.WaitGroup
	slots := make(chan struct{}, min(4, runtime.GOMAXPROCS(0)))
	for _, p := range packs {
		out = append(out, j.required(p))
		at := len(out)
		out = append(out, make([]schemas.LintResult, len(p.Rules))...)
		for i := range p.Rules {
			x, to := &p.Rules[i], &out[at+i]
			*to = about(p, x)
		}
	}
	at := 0
	for _, p := range packs {
		at++
		for i := range p.Rules {
			x, to := &p.Rules[i], &out[at+i]
			slots <- struct{}{}
			wait.Go(func() {
				defer func() { <-slots }()
				j.rule(ctx, x, to)
			})
		}
		at += len(p.Rules)
	}
	wait.Wait()
	return out, ctx.Err()
}

// about is what a rule says whatever the archive has.
func about(p *pack.Pack, x *pack.Rule) schemas.LintResult {
	r := schemas.LintResult{Rule: p.FullID(x.ID), Severity: x.Severity.String(), Message: x.Message, Fix: x.Fix, Needs: x.Needs}
	for _, m := range x.Mappings {
		r.Mappings = append(r.Mappings, schemas.RuleMapping(m))
	}
	return r
}

// required is the rule that every pack has: the signals that it requires are there.
func (j *judge) required(p *pack.Pack) schemas.LintResult {
	r := schemas.LintResult{Rule: p.FullID(pack.RuleSignals), Severity: pack.Error.String(), Outcome: schemas.RuleHolds,
		Message: "The archive does not have all signals that the pack requires.", Fix: "See what each needs: runner-lint --explain " + p.Name + ":" + pack.RuleSignals, Needs: p.Requires}
	r.Missing, r.Evidence = j.missing(p.Requires)
	if r.EvidenceCount = len(r.Evidence); r.EvidenceCount > 0 {
		r.Outcome, r.Why = schemas.RuleViolated, fmt.Sprintf("%d of %d signals are not there", len(r.Missing), len(p.Requires))
	}
	r.Evidence = r.Evidence[:min(len(r.Evidence), schemas.MaxLintEvidence)]
	return r
}

// missing are the signals that the archive does not have, and why.
func (j *judge) missing(names []string) (list, why []string) {
	for _, name := range names {
		if d := j.signals[name]; d.Status != schemas.SignalCaptured && d.Status != schemas.SignalRedacted {
			list, why = append(list, name), append(why, name+": "+d.Reason)
		}
	}
	return list, why
}

// rule asks one rule.
func (j *judge) rule(ctx context.Context, x *pack.Rule, r *schemas.LintResult) {
	defer x.Assert.Close()
	var why []string
	if r.Missing, why = j.missing(x.Needs); len(r.Missing) > 0 {
		r.Outcome, r.Why = schemas.RuleUndecided, "the archive does not have "+why[0]
		return
	}
	if x.None {
		j.none(ctx, x, r)
		return
	}
	answer := x.Assert.Check(ctx, j.documents, j.blind)
	switch {
	case answer.Fault == "":
		r.Outcome = schemas.RuleHolds
	case answer.Decided:
		r.Outcome, r.Why = schemas.RuleViolated, answer.Fault
	default:
		r.Outcome, r.Why = schemas.RuleUndecided, verdict.Printable(answer.Fault, 500)
	}
}

// none asks a rule whose program must give nothing.
func (j *judge) none(ctx context.Context, x *pack.Rule, r *schemas.LintResult) {
	shown, fault := x.Assert.Nothing(ctx, j.documents, j.blind, schemas.MaxLintEvidence)
	switch {
	case fault != "":
		r.Outcome, r.Why = schemas.RuleUndecided, verdict.Printable(fault, 500)
	case shown.Count > 0:
		r.Outcome, r.Why = schemas.RuleViolated, fmt.Sprintf("found %d", shown.Count)
		r.Evidence, r.EvidenceCount = shown.Texts, shown.Count
	default:
		r.Outcome = schemas.RuleHolds
	}
}

// isFinding reports whether a rule does not hold.
func isFinding(r *schemas.LintResult) bool { return r.Outcome != schemas.RuleHolds }

// count counts findings, and those of a severity or a higher one.
func count(results []schemas.LintResult, failOn pack.Severity) (c schemas.LintCounts, failing int) {
	for i := range results {
		r := &results[i]
		if !isFinding(r) {
			continue
		}
		s, _ := pack.ParseSeverity(r.Severity)
		*[]*int{&c.Info, &c.Warning, &c.Error}[s]++
		if s >= failOn {
			failing++
		}
	}
	return c, failing
}

// requires are the signals that packs and their rules need.
func requires(packs []*pack.Pack) []string {
	var names []string
	for _, p := range packs {
		names = append(names, p.Requires...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
