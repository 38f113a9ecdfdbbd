package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/nearest"
	"github.com/runner-evidence/runner/cmd/internal/pack"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// explainScore is what --explain takes besides rules.
const explainScore = "closure.score"

func unknownRule(what string, known []string) error {
	hint := "give the pack with --pack, and then " + explainScore + " or PACK:RULE; --json lists the rules"
	if near := nearest.Word(what, known); near != "" {
		hint = "did you mean --explain " + near + "? A rule is of a pack that --pack names"
	}
	return tool.Fail(tool.ExitUsage, fmt.Errorf("--explain %q: nothing of that name", schemas.Text(what)), hint)
}

func (r *result) explain(what string) []byte {
	var b bytes.Buffer
	if what == explainScore {
		r.explainScore(&b)
		return b.Bytes()
	}
	for _, p := range r.opt.Packs {
		for _, id := range ids(p) {
			if what == p.Name+":"+id || what == p.FullID(id) {
				r.explainRule(&b, p, id)
			}
		}
	}
	return b.Bytes()
}

func (r *result) explainRule(b *bytes.Buffer, p *pack.Pack, id string) {
	at := slices.IndexFunc(r.report.Results, func(x schemas.LintResult) bool { return x.Rule == p.FullID(id) })
	x := &r.report.Results[at]
	fmt.Fprintf(b, "%s: %s\n\n", x.Rule, x.Outcome)
	row(b, "severity", x.Severity)
	row(b, "says", x.Message)
	if i := slices.IndexFunc(p.Rules, func(y pack.Rule) bool { return y.ID == id }); i >= 0 {
		word := "asks"
		if p.Rules[i].None {
			word = "forbids"
		}
		row(b, word, strings.Join(strings.Fields(p.Rules[i].Assert.Text), " "))
	}
	for _, m := range x.Mappings {
		row(b, "maps to", m.Framework+" "+m.Ref)
	}
	if x.Why != "" {
		row(b, "because", shown(x.Why))
	}
	for i, text := range x.Evidence {
		row(b, map[bool]string{true: "found"}[i == 0], shown(text))
	}
	if more := x.EvidenceCount - len(x.Evidence); more > 0 {
		row(b, "", fmt.Sprintf("… and %d more", more))
	}
	if x.Outcome != schemas.RuleHolds {
		row(b, "to do", x.Fix)
	}
	if len(x.Needs) > 0 {
		b.WriteString("\nsignals that it needs:\n")
	}
	for _, name := range x.Needs {
		r.explainSignal(b, name)
	}
}

func row(b *bytes.Buffer, name, text string) { fmt.Fprintf(b, "%-9s %s\n", name, text) }

// explainSignal says what the archive has of a signal, where, and what to do.
func (r *result) explainSignal(b *bytes.Buffer, name string) {
	d := r.signals[name]
	fmt.Fprintf(b, "  %-8s  %s", d.Status, name)
	if len(d.EvidencePaths) > 0 {
		fmt.Fprintf(b, "  (%s)", strings.Join(d.EvidencePaths, ", "))
	}
	b.WriteString("\n")
	if d.Reason != "" {
		fmt.Fprintf(b, "            %s\n", shown(d.Reason))
	}
	if d.Commitment != nil {
		fmt.Fprintf(b, "            committed by %s %s\n", d.Commitment.Alg, d.Commitment.Digest)
	}
}

func (r *result) explainScore(b *bytes.Buffer) {
	c := &r.closure
	sum, has := uint64(0), uint64(0)
	for name, w := range c.Scoring.Weights {
		if sum += w; slices.Contains(c.Captured, name) {
			has += w
		}
	}
	fmt.Fprintf(b, "closure.score is %v: %d of %d by weight (%s), confidence %s\n\n", c.Score, has, sum, c.Scoring.Method, c.Confidence)
	b.WriteString("What a replay needs, each with its weight:\n")
	for _, s := range schemas.Signals {
		w := c.Scoring.Weights[s.Name]
		if w == 0 {
			continue
		}
		d := r.signals[s.Name]
		fmt.Fprintf(b, "  %d  %-8s  %s: %s\n", w, d.Status, s.Name, s.What)
		if d.Reason != "" {
			fmt.Fprintf(b, "               %s\n", shown(d.Reason))
		}
	}
	if len(c.Dependencies) == 0 {
		b.WriteString("\nNo input was seen that nothing held fixed.\n")
	} else {
		b.WriteString("\nInputs that were seen and that nothing held fixed:\n")
	}
	for _, d := range c.Dependencies {
		fmt.Fprintf(b, "  %s\n", shown(d))
	}
	if c.Confidence != schemas.ConfidenceHigh {
		b.WriteString("\nThe observation has gaps: there may be more.\n")
	}
}
