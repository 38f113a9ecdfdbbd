package main

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/runner-evidence/runner/cmd/internal/junit"
	"github.com/runner-evidence/runner/cmd/internal/sarif"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// ruleDoubt is the rule of what makes a comparison inconclusive.
const ruleDoubt = "inconclusive"

// writeSARIF writes the changes as findings at lines of the lock file: an item has no line of source, so the
// line is where the item would be.
func writeSARIF(w io.Writer, c *comparison, opt *Options) error {
	r := sarif.Report{Tool: "runner-diff", Version: tool.Version()}
	for _, g := range schemas.CapabilityGroups {
		text := "The new run has an item of the group " + g + " that the baseline has not."
		if g == schemas.GroupRemoved {
			text = "The baseline has an item that the new run has not."
		}
		r.Rules = append(r.Rules, sarif.Rule{ID: g, Text: text, Help: "If it is meant, add it: runner-diff --update-lock FILE NEW. Or ignore it with a rule of --ignore."})
	}
	r.Rules = append(r.Rules, sarif.Rule{ID: ruleDoubt, Text: "The records cannot be compared.", Help: "Measure again, completely and in the same way."})
	file, lineOf := c.lines()
	for _, d := range c.doubts {
		r.Findings = append(r.Findings, sarif.Finding{Rule: ruleDoubt, Level: sarif.LevelError, Message: d.Side + ": " + d.What, File: file, Line: min(1, len(file)), Fingerprint: d.Code + "/" + d.Side})
	}
	for _, list := range [][]change{c.added, c.removed} {
		for i := range list {
			x := &list[i]
			level := sarif.LevelNote
			if x.blocks {
				level = sarif.LevelError
			}
			r.Findings = append(r.Findings, sarif.Finding{Rule: x.group, Level: level, Message: x.words(), File: file, Line: lineOf(&x.key),
				Logical: x.label() + " " + x.value, Fingerprint: x.fingerprint()})
		}
	}
	return r.Write(w)
}

// words are a change in one line.
func (x *change) words() string {
	verb := "new: "
	if x.group == schemas.GroupRemoved {
		verb = "no longer: "
	}
	return verb + x.label() + " " + verdict.Printable(x.value, maxMarkName) + strings.TrimPrefix(by(x), " ")
}

// lines is the lock file, and the line where an item is or would be.
func (c *comparison) lines() (file string, of func(*key) int) {
	l := c.base.lock
	if l == nil {
		return "", func(*key) int { return 0 }
	}
	list := c.base.items.sorted()
	return l.name, func(k *key) int {
		at := sort.Search(len(list), func(i int) bool { return compareKeys(&list[i].key, k) >= 0 })
		if at == len(list) {
			return l.end
		}
		return int(list[at].line)
	}
}

// listed are changes in a text that junit does not cut; it says how many more there are.
func listed(list []*change) string {
	const room = junit.MaxText - 100
	text, used := list[0].words(), 0
	for i, x := range list[1:] {
		one := "; " + x.words()
		if used = utf8.RuneCountInString(text + one); used > room {
			return text + fmt.Sprintf("; and %d more, see the report", len(list)-1-i)
		}
		text += one
	}
	return text
}

// writeJUnit writes one case for each group: what blocks is a failure, what the record cannot tell an error.
func writeJUnit(w io.Writer, c *comparison, opt *Options) error {
	s := junit.Suite{Name: "runner-diff"}
	observed := junit.Case{Name: "observation", Class: s.Name}
	if len(c.doubts) > 0 {
		var texts []string
		for _, d := range c.doubts {
			texts = append(texts, d.Side+": "+d.What)
		}
		observed.Outcome, observed.Message, observed.Text = junit.Broken, "the records cannot be compared", strings.Join(texts, "; ")
	}
	s.Cases = append(s.Cases, observed)
	for _, g := range schemas.CapabilityGroups {
		one := junit.Case{Name: g, Class: s.Name}
		list := c.ofGroup(g)
		if len(list) > 0 {
			one.Message, one.Text = list[0].words(), listed(list)
			if len(list) > 1 {
				one.Message = fmt.Sprintf("%d changes, the first: %s", len(list), one.Message)
			}
			if one.Outcome = junit.Failed; !list[0].blocks {
				one.Outcome = junit.Skipped
			}
		}
		s.Cases = append(s.Cases, one)
	}
	return s.Write(w)
}
