package main

import (
	"cmp"
	"path"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// unlimited is a length that no line has.
const unlimited = 1 << 30

// listLine is one act for people: process, program, operation, names and, unless it was done,
// how it ended.
func (p *printer) listLine(a *acts.Act) {
	p.line("%7d %-12s %-10s %s%s%s", a.Process.PID, verdict.Printable(program(a), unlimited), opWord(a), names(a), p.ending(a), p.whereOf(a))
}

// whereOf is who did an act, and where its names lead, if that is not as at the start of the run.
func (p *printer) whereOf(a *acts.Act) string {
	if mark := contextOf(a).mark(a.Layer); mark != "" {
		return "  " + p.paint(amber, "("+mark+")")
	}
	return ""
}

// program is the name of the program that did an act, without its folders.
func program(a *acts.Act) string {
	name := cmp.Or(a.Process.Script, a.Process.Executable)
	if name == "" {
		return ""
	}
	return path.Base(name)
}

// opWord is the name of an operation; of an open, what it was for.
func opWord(a *acts.Act) string {
	if a.Op != schemas.OpOpen {
		return a.Op
	}
	var words []string
	if a.Read {
		words = append(words, "read")
	}
	if a.Write {
		words = append(words, "write")
	}
	if len(words) == 0 {
		return a.Op
	}
	return strings.Join(words, "+")
}

// names are the names of an act, each in its place.
func names(a *acts.Act) string {
	var b strings.Builder
	for _, v := range []string{a.Path, a.Endpoint, a.Name} {
		if v != "" {
			b.WriteString(verdict.Printable(v, unlimited))
		}
	}
	for _, x := range []struct{ before, v string }{{" → ", a.NewPath}, {", old root at ", a.OldPath}, {", for ", a.Script}, {", from ", a.Source}, {", ", a.Attribute}} {
		if x.v != "" {
			b.WriteString(x.before + verdict.Printable(x.v, unlimited))
		}
	}
	if b.Len() == 0 {
		return valueOf(a)
	}
	return b.String()
}

// ending is how an act ended, unless it was done.
func (p *printer) ending(a *acts.Act) string {
	words := ""
	if a.Outcome != schemas.ActDone {
		end, style := endWords(a)
		words = "  [" + p.paint(style, end) + "]"
	}
	if a.InDoubt {
		words += "  [" + p.paint(amber, "in doubt") + "]"
	}
	for _, id := range a.ToolCalls {
		words += "  call " + verdict.Printable(id, unlimited)
	}
	return words
}

// endWords say how an act ended, and with which style.
func endWords(a *acts.Act) (words, style string) {
	switch a.Outcome {
	case schemas.ActDone:
		return a.Outcome, green
	case schemas.ActFailed:
		return strings.TrimSpace(a.Outcome + " " + a.Error), amber
	case schemas.ActRefused:
		words = a.Outcome
		if a.Rule != nil {
			words += " " + verdict.RuleWords(*a.Rule, a.RuleID)
		}
		return words, red
	}
	return a.Outcome, amber
}
