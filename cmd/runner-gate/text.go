package main

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// maxShownName is how many characters of a name a line has.
const maxShownName = 2000

// text writes a plan for people: the answer first, then each item with what was decided about it.
type text struct{ w *bufio.Writer }

func (t *text) line(format string, a ...any) {
	for i, v := range a {
		if s, is := v.(string); is {
			a[i] = verdict.Printable(s, maxShownName)
		}
	}
	fmt.Fprintf(t.w, format+"\n", a...)
}

func (t *text) plan(p *gate.Plan, digest string) {
	t.answer(p)
	t.line("plan       %s", digest)
	t.line("archive    %s, run %s", p.Archive, p.RunID)
	t.line("command    %s", command(p))
	for _, r := range p.Policies {
		t.line("policy     %s %s", r.Kind, r.Digest)
	}
	if p.Base != nil {
		t.line("base       %s", p.Base.Digest)
	}
	if p.Evidence.Complete {
		t.line("evidence   complete")
	}
	for _, d := range p.Evidence.Doubts {
		t.line("in doubt   %s", d)
	}
	for _, b := range p.Blocked {
		t.line("cannot     %s", b)
	}
	t.files(p)
	t.intents(p)
	for i, e := range p.Network {
		t.head(i, "Requests of the run, which were made then or refused")
		d := p.Decision.Network[i]
		status := e.Decision
		if e.Status != 0 {
			status += " " + strconv.Itoa(int(e.Status))
		}
		t.line("  %s %s: %s, %s", orDash(e.Method), e.URL, status, words(d.Allowed, d.RequiresApproval, d.Rule, d.Reasons))
	}
	for i, c := range p.Calls {
		t.head(i, "Tool calls of the run")
		d := p.Decision.Calls[i]
		t.line("  %s %s: %s, %s", c.ID, c.Tool, orDash(c.Decision), words(d.Allowed, d.RequiresApproval, d.Rule, d.Reasons))
	}
}

// answer is the first line: whether it can be committed.
func (t *text) answer(p *gate.Plan) {
	refused := p.Refused()
	switch {
	case len(refused) > 0:
		t.line("denied: nothing of it can be committed")
		for _, r := range refused {
			t.line("because    %s", r)
		}
	case len(p.Approvals) > 0:
		t.line("allowed, once it is approved")
		for _, r := range p.Approvals {
			who := "of those given to commit with --public-key"
			if len(r.Keys) > 0 {
				who = "of " + strings.Join(r.Keys, ", ")
			}
			t.line("approval   %s: %s %s", r.Why, strconv.Itoa(r.Count), who)
		}
	default:
		t.line("allowed")
	}
}

func command(p *gate.Plan) string {
	s := strings.Join(p.Evidence.Command, " ")
	switch {
	case p.Evidence.ExitCode != nil:
		s += fmt.Sprintf(", exit %d", *p.Evidence.ExitCode)
	case p.Evidence.Signal != nil:
		s += fmt.Sprintf(", killed by signal %d", *p.Evidence.Signal)
	default:
		s += ", its end was not seen"
	}
	return s
}

func (t *text) head(i int, title string) {
	if i == 0 {
		t.line("\n" + title)
	}
}

func (t *text) files(p *gate.Plan) {
	for i, f := range p.Files {
		t.head(i, "Files")
		d := p.Decision.Files[i]
		t.line("  %s %s: %s, %s", f.Op, f.Path, became(&f), words(d.Allowed, d.RequiresApproval, d.Rule, append(d.Reasons, d.ApprovalReasons...)))
		if f.Diff == nil {
			continue
		}
		for l := range strings.Lines(f.Diff.Text) {
			t.w.WriteString("      " + plain(strings.TrimSuffix(l, "\n")) + "\n")
		}
		if f.Diff.Cut {
			t.line("      … more: the rest is in the archive")
		}
	}
}

// plain is a line of a text, with its blanks, in which nothing does something to a terminal.
func plain(line string) string {
	var b strings.Builder
	for i, part := range strings.Split(line, " ") {
		if i > 0 {
			b.WriteByte(' ')
		}
		for j, word := range strings.Split(part, "\t") {
			if j > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(verdict.Printable(word, maxDiff))
		}
	}
	return b.String()
}

// became says how a name differs.
func became(f *gate.File) string {
	switch {
	case f.Before == nil:
		return state(f.After)
	case f.After == nil:
		return "was " + state(f.Before)
	}
	return state(f.Before) + " → " + state(f.After)
}

func state(s *schemas.FileState) string {
	out := s.Kind
	switch {
	case s.Target != "":
		out += " to " + s.Target
	case s.Link != "":
		out += ", the same as " + s.Link
	case s.Size != nil:
		out += fmt.Sprintf(" of %d bytes", *s.Size)
	}
	out += fmt.Sprintf(" %04o", s.Mode)
	if s.UID != nil {
		out += fmt.Sprintf(" of %d:%d", *s.UID, *s.GID)
	}
	return out
}

func (t *text) intents(p *gate.Plan) {
	for i, in := range p.Intents {
		t.head(i, "Intents: what the run asks to have done")
		d := p.Decision.Intents[i]
		t.line("  %s %s: %s", in.ID, in.Type, words(d.Allowed, d.RequiresApproval, d.Rule, append(d.Reasons, d.ApprovalReasons...)))
		t.line("      %s", string(in.Payload))
		switch r := in.Rollback; {
		case r.Available && r.Rule != "":
			t.line("      can be taken back: %s %s (%s)", r.Method, r.PathTemplate, r.Rule)
		case !r.Available:
			t.line("      cannot be taken back")
		}
		if in.Before == beforeUnknown {
			t.line("      what it replaces is not known")
		}
	}
}

// words say what was decided about an item.
func words(allowed, asks bool, rule string, reasons []string) string {
	s := "denied"
	switch {
	case allowed && asks:
		s = "needs approval"
	case allowed:
		s = "allowed"
	}
	if rule != "" {
		s += " by " + rule
	}
	if len(reasons) > 0 {
		s += " (" + strings.Join(reasons, "; ") + ")"
	}
	return s
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
