package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/runner-evidence/runner/cmd/internal/markdown"
	"github.com/runner-evidence/runner/schemas"
)

// marker lets CI find the comment that it wrote before.
const marker = "<!-- runner:capability-diff -->"

// Bounds of a comment, in characters. GitHub refuses one of more than 65,536.
const (
	maxComment  = 65536
	maxMarkName = 300
	maxHead     = 200 // of a group without its lines
)

// writeMarkdown writes the comparison as a comment of a pull request: whether it can be believed first.
func writeMarkdown(w io.Writer, c *comparison, opt *Options) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n### Capabilities: %s\n\n%s.\n", marker, c.verdict, c.sentence())
	if len(c.doubts) > 0 {
		b.WriteString("\n**This comparison proves nothing:**\n\n")
		for i, d := range c.doubts {
			if i == maxDoubts {
				fmt.Fprintf(&b, "- and %d more\n", len(c.doubts)-i)
				break
			}
			fmt.Fprintf(&b, "- %s: %s\n", d.Side, markdown.Code(d.What, maxMarkName))
		}
	} else {
		b.WriteString("\nBoth sides are completely observed, in the same way.\n")
	}
	if len(c.flips) > 0 {
		fmt.Fprintf(&b, "\n**The policy decides otherwise of %d tools**\n\n", len(c.flips))
		for i, f := range c.flips {
			if i == maxDoubts {
				fmt.Fprintf(&b, "- and %d more\n", len(c.flips)-i)
				break
			}
			fmt.Fprintf(&b, "- %s: %s before, %s now\n", markdown.Code(f.Tool, maxMarkName), markdown.Code(strings.Join(f.Base, ", "), 100), markdown.Code(strings.Join(f.New, ", "), 100))
		}
	}
	end := markEnd(c, opt)
	room := maxComment - utf8.RuneCountInString(b.String()) - utf8.RuneCountInString(end)
	for i, group := range schemas.CapabilityGroups {
		part := markGroup(c, group, room-maxHead*(len(schemas.CapabilityGroups)-1-i)) // each group says at least how many
		b.WriteString(part)
		room -= utf8.RuneCountInString(part)
	}
	b.WriteString(end)
	_, err := io.WriteString(w, b.String())
	return err
}

// maxDoubts of a comment are listed.
const maxDoubts = 20

// markGroup is one group, in at most so many characters.
func markGroup(c *comparison, group string, room int) string {
	list := c.ofGroup(group)
	if len(list) == 0 {
		return ""
	}
	note, removed := "", group == schemas.GroupRemoved
	if !list[0].blocks {
		note = ", does not block"
	}
	head, tail := fmt.Sprintf("\n**Added: %s** (%d%s)\n\n", group, len(list), note), ""
	if removed {
		head, tail = fmt.Sprintf("\n<details><summary>Removed (%d%s)</summary>\n\n", len(list), note), "\n</details>\n"
	}
	const more = "- and 99999999 more, see the report\n"
	var b strings.Builder
	b.WriteString(head)
	room -= utf8.RuneCountInString(head+tail) + len(more)
	for i := range list {
		line := markLine(list[i])
		if room -= utf8.RuneCountInString(line); room < 0 {
			fmt.Fprintf(&b, "- and %d more, see the report\n", len(list)-i)
			break
		}
		b.WriteString(line)
	}
	b.WriteString(tail)
	return b.String()
}

func markLine(x *change) string {
	s := "- " + x.name()
	if x.how != "" {
		s += " (" + markdown.Code(x.how, 60) + ")"
	}
	s += " " + markdown.Code(x.value, maxMarkName)
	if x.count > 0 {
		s += fmt.Sprintf(", %d×", x.count)
	}
	for _, w := range x.who {
		if w.Executable != "" {
			s += " by " + markdown.Code(w.Executable, 120)
		}
		if w.ToolCall != "" {
			s += " in tool call " + markdown.Code(w.ToolCall, 120)
		}
	}
	if x.more > 0 {
		s += fmt.Sprintf(" and others %d×", x.more)
	}
	if x.of > 1 {
		s += fmt.Sprintf(", in %d of %d runs", x.in, x.of)
	}
	return s + "\n"
}

// markEnd is what comes after the lists: a rule to copy, what was ignored, and how to do it again.
func markEnd(c *comparison, opt *Options) string {
	var b strings.Builder
	if len(c.added) > 0 {
		b.WriteString("\n<details><summary>Ignore an item</summary>\n\n" + markdown.Block("yaml", exampleRule(&c.added[0])) + "\n</details>\n")
	}
	if opt.Ignore != nil {
		fmt.Fprintf(&b, "\nIgnored: %d.", c.ignored)
		for i := range opt.Ignore.rules {
			if i == maxDoubts {
				fmt.Fprintf(&b, " And %d more rules.", len(opt.Ignore.rules)-i)
				break
			}
			r := &opt.Ignore.rules[i]
			switch r.state() {
			case ruleExpired:
				fmt.Fprintf(&b, " Rule %s expired on %s and ignores nothing.", markdown.Code(r.id, 64), r.expires)
			case ruleUnused:
				fmt.Fprintf(&b, " Rule %s is unused.", markdown.Code(r.id, 64))
			default:
				fmt.Fprintf(&b, " Rule %s: %d.", markdown.Code(r.id, 64), r.ignored)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("\n<details><summary>The records</summary>\n\n")
	for i, r := range c.base.runs {
		if i == 4 {
			fmt.Fprintf(&b, "- and %d more baselines\n", len(c.base.runs)-i)
			break
		}
		b.WriteString("- base " + markdown.Code(r.Archive, 100) + " " + markdown.Code(r.Digest, 80) + "\n")
	}
	if l := c.base.lock; l != nil {
		b.WriteString("- lock " + markdown.Code(l.name, 100) + " " + markdown.Code(l.digest, 80) + "\n")
	}
	for _, r := range c.fresh.runs {
		b.WriteString("- new " + markdown.Code(r.Archive, 100) + " " + markdown.Code(r.Digest, 80) + "\n")
	}
	b.WriteString("\nDo it again: " + markdown.Code(again(c), 400) + "\n\n</details>\n")
	return b.String()
}

// exampleRule is a rule that ignores an item, to copy.
func exampleRule(x *change) string {
	value, err := schemas.Marshal(x.value)
	if err != nil || len(value) > 1000 {
		return "# the value is too long: see the report\n"
	}
	return fmt.Sprintf("  - id: %s-%s\n    kind: %s\n    match: {exact: %s}\n    reason: \"\"  # say why\n", strings.ReplaceAll(x.name(), "_", "-"), x.fingerprint()[:8], x.name(), inert(value))
}

// again is the command that compares the same records.
func again(c *comparison) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	s := "runner-diff"
	if l := c.base.lock; l != nil {
		s += " --lock " + quote(l.name)
	}
	for i, r := range c.base.runs {
		if i == 2 {
			s += " …"
			break
		}
		s += " --base " + quote(r.Archive)
	}
	return s + " " + quote(c.fresh.runs[0].Archive)
}
