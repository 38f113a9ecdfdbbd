package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Bounds of the text. --report has everything.
const (
	maxShown     = 200  // changes of a group
	maxShownName = 4096 // characters of a name
)

// writeText writes the comparison for people.
func writeText(w io.Writer, c *comparison, opt *Options) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", c.verdict, c.sentence())
	for _, d := range c.doubts {
		fmt.Fprintf(&b, "%-10s %s: %s\n", "doubt", d.Side, verdict.Printable(d.What, maxShownName))
	}
	for _, f := range c.flips {
		fmt.Fprintf(&b, "%-10s %s: %s in the baseline, %s now\n", "flipped", verdict.Printable(f.Tool, maxShownName), words(f.Base), words(f.New))
	}
	for _, group := range schemas.CapabilityGroups {
		writeGroup(&b, c, group)
	}
	opt.Ignore.text(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func words(list []string) string { return verdict.Printable(strings.Join(list, ", "), maxShownName) }

// sentence says the verdict in words.
func (c *comparison) sentence() string {
	what := fmt.Sprintf("%d added, %d removed, %d the same", len(c.added), len(c.removed), c.same)
	if c.flaky > 0 {
		what += fmt.Sprintf(", %d of some baseline runs only", c.flaky)
	}
	if c.ignored > 0 {
		what += fmt.Sprintf(", %d ignored", c.ignored)
	}
	switch {
	case c.verdict == schemas.VerdictInconclusive:
		what += "; the records cannot be compared"
	case c.verdict == schemas.VerdictChanged && c.blocking == 0:
		what += "; nothing in the groups of --fail-on"
	}
	return what
}

func (c *comparison) ofGroup(group string) []*change {
	from := c.added
	if group == schemas.GroupRemoved {
		from = c.removed
	}
	var list []*change
	for i := range from {
		if from[i].group == group {
			list = append(list, &from[i])
		}
	}
	return list
}

func writeGroup(b *strings.Builder, c *comparison, group string) {
	list := c.ofGroup(group)
	if len(list) == 0 {
		return
	}
	note := ""
	if !list[0].blocks {
		note = ", does not block"
	}
	fmt.Fprintf(b, "\n%s (%d%s)\n", group, len(list), note)
	sign := "+"
	if group == schemas.GroupRemoved {
		sign = "-"
	}
	for i := range list[:min(len(list), maxShown)] {
		x := list[i]
		fmt.Fprintf(b, "  %s %s  %s%s\n", sign, x.label(), verdict.Printable(x.value, maxShownName), by(x))
	}
	if n := len(list) - maxShown; n > 0 {
		fmt.Fprintf(b, "  … and %d more: --report has all\n", n)
	}
}

// label is the kind of an item, with how.
func (k *key) label() string {
	if k.how == "" {
		return k.name()
	}
	return k.name() + " (" + verdict.Printable(k.how, maxShownName) + ")"
}

// by says who did it, and how often.
func by(x *change) string {
	var parts []string
	if x.count > 0 {
		parts = append(parts, fmt.Sprintf("%d×", x.count))
	}
	for _, w := range x.who {
		parts = append(parts, w.words())
	}
	if x.more > 0 {
		parts = append(parts, fmt.Sprintf("others %d×", x.more))
	}
	if x.of > 1 {
		parts = append(parts, fmt.Sprintf("in %d of %d runs", x.in, x.of))
	}
	if len(parts) == 0 {
		return ""
	}
	return "  [" + strings.Join(parts, "; ") + "]"
}

// words is who did it.
func (w *tally) words() string {
	s := ""
	if w.Executable != "" {
		s = "by " + verdict.Printable(w.Executable, maxShownName)
	}
	if w.ToolCall != "" {
		s = strings.TrimLeft(s+" in tool call "+verdict.Printable(w.ToolCall, maxShownName), " ")
	}
	if s == "" {
		s = "by its parent's program"
	}
	return s
}
