package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/pack"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Bounds of the text.
const (
	maxNames = 5   // found things of a rule; --json has more
	maxName  = 200 // characters
	indent   = "         "
)

// text is the answer for people: the findings, worst first, and how much is there.
func (r *result) text() []byte {
	var b bytes.Buffer
	p := &r.report
	var names []string
	for _, x := range p.Packs {
		names = append(names, x.Name+"@"+x.Version)
	}
	answer := "passes"
	if !p.Passed {
		answer = "does not pass"
	}
	fmt.Fprintf(&b, "%s: %s %s: %s\n", shown(p.Archive), answer, strings.Join(names, ", "), r.tally())
	for s := len(schemas.Severities) - 1; s >= 0; s-- {
		for i := range p.Results {
			if x := &p.Results[i]; x.Outcome == schemas.RuleViolated && x.Severity == schemas.Severities[s] {
				finding(&b, x)
			}
		}
	}
	undecided(&b, p.Results)
	c := &p.Completeness
	fmt.Fprintf(&b, "signals  %d of %d required are there", len(c.Captured)+len(c.Redacted), len(c.Required))
	if len(c.Redacted) > 0 {
		fmt.Fprintf(&b, ", %d as digests: %s", len(c.Redacted), strings.Join(c.Redacted, " "))
	}
	if len(c.Unknown) > 0 {
		fmt.Fprintf(&b, "; not %s", strings.Join(c.Unknown, " "))
	}
	fmt.Fprintf(&b, "\nclosure  %v of 1, confidence %s, %s (--explain closure.score)\n", r.closure.Score, r.closure.Confidence, counted(len(r.closure.Dependencies), "uncontrolled dependency", "uncontrolled dependencies"))
	return b.Bytes()
}

// tally says how many rules hold and what was found.
func (r *result) tally() string {
	held := 0
	for i := range r.report.Results {
		if !isFinding(&r.report.Results[i]) {
			held++
		}
	}
	parts := []string{fmt.Sprintf("%d of %s hold", held, counted(len(r.report.Results), "rule", "rules"))}
	f := &r.report.Findings
	for _, c := range []struct {
		n    int
		name string
	}{{f.Error, "error"}, {f.Warning, "warning"}, {f.Info, "info"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.name))
		}
	}
	return strings.Join(parts, ", ")
}

func finding(b *bytes.Buffer, x *schemas.LintResult) {
	fmt.Fprintf(b, "%-8s %s\n%s%s\n", x.Severity, x.Rule, indent, x.Message)
	for _, text := range x.Evidence[:min(len(x.Evidence), maxNames)] {
		fmt.Fprintf(b, "%s  %s\n", indent, shown(text))
	}
	if more := x.EvidenceCount - maxNames; more > 0 {
		fmt.Fprintf(b, "%s  … and %d more\n", indent, more)
	}
	fmt.Fprintf(b, "%sto do: %s\n", indent, x.Fix)
}

// undecided lists the rules that could not be asked, by what stood in the way. What such a rule warns of was
// not seen, so its message is not here.
func undecided(b *bytes.Buffer, results []schemas.LintResult) {
	var whys []string
	of := map[string][]string{}
	for i := range results {
		x := &results[i]
		if x.Outcome != schemas.RuleUndecided {
			continue
		}
		if of[x.Why] == nil {
			whys = append(whys, x.Why)
		}
		of[x.Why] = append(of[x.Why], fmt.Sprintf("%-8s %s", x.Severity, x.Rule))
	}
	for _, why := range whys {
		fmt.Fprintf(b, "not decided: %s\n", shown(why))
		for _, rule := range of[why] {
			fmt.Fprintf(b, "  %s\n", rule)
		}
	}
}

// shown makes a text of an archive safe to print.
func shown(s string) string { return verdict.Printable(s, maxName) }

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// list prints the packs or the signals.
func list(env *tool.Env, what string) error {
	var b bytes.Buffer
	if what == "packs" {
		for _, name := range pack.Names() {
			p, err := pack.Open(name)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s@%s\n  %s\n  %s\n", p.Name, p.Version, p.Description, counted(len(p.Rules), "rule", "rules"))
			for _, f := range p.Frameworks {
				fmt.Fprintf(&b, "  %s: %s\n", f.ID, f.Title)
			}
		}
	} else {
		for _, s := range schemas.Signals {
			fmt.Fprintf(&b, "%-20s %s\n", s.Name, s.What)
		}
	}
	return env.WriteOutput("-", tool.Bytes(b.Bytes()))
}

// explainable reports why there is nothing of that name to explain.
func explainable(packs []*pack.Pack, what string) error {
	if what == explainScore {
		return nil
	}
	known := []string{explainScore}
	for _, p := range packs {
		for _, id := range ids(p) {
			known = append(known, p.Name+":"+id, p.FullID(id))
		}
	}
	if slices.Contains(known, what) {
		return nil
	}
	return unknownRule(what, known)
}

func ids(p *pack.Pack) []string {
	list := []string{pack.RuleSignals}
	for i := range p.Rules {
		list = append(list, p.Rules[i].ID)
	}
	return list
}
