package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// Lengths of what an explanation shows, in characters.
const (
	maxShownName   = 120
	maxShownEffect = 300
	maxShownText   = 4000
)

// printExplanation writes the explanation for people. Names come from the measured
// program, so every one goes through printable.
func (v *verifier) printExplanation(w io.Writer) {
	x := v.res.Explanation
	for i := range x.Calls {
		v.printCall(w, i+1, len(x.Calls), &x.Calls[i])
	}
	if len(x.Calls) == 0 {
		fmt.Fprintln(w, "No tool call: neither the policy nor the SDK reports one.")
	}
	list(w, "All kernel events:", v.classWords())
	var rest []string
	for _, entry := range x.Ambiguities {
		rest = append(rest, inWords(entry))
	}
	list(w, "Of no tool call:", rest)
	if x.AllowedClaim != "" {
		list(w, "Of each tool call that the policy decided, this is claimed:", []string{x.AllowedClaim})
	}
	list(w, "And this never:", []string{x.ForbiddenClaim})
	list(w, "What was not seen, and other notes of the observation:", v.health.Notes)
}

// classWords say how many kernel events are of which class, where that is known.
func (v *verifier) classWords() []string {
	if v.health.KernelLayer == schemas.LayerAbsent || !v.writtenByRunner() || len(v.noteTexts(schemas.NoteWindows)) == 0 {
		return nil
	}
	class := func(name string) uint64 { n, _ := v.noteCount(schemas.NoteWindows, name); return n }
	return []string{fmt.Sprintf("%s in windows of calls, %d before a tool server's first call or of a proxy, %d of tool servers between calls, %d of all other processes",
		counted(class(schemas.ClassCall), "kernel event"), class(schemas.ClassSetup), class(schemas.ClassIdle), class(schemas.ClassAgent))}
}

// list is section without a limit: an explanation leaves nothing out.
func list(w io.Writer, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintln(w, title)
	for _, s := range items {
		fmt.Fprintf(w, "  %s\n", printable(s, maxShownText))
	}
}

func (v *verifier) printCall(w io.Writer, n, of int, c *Call) {
	tool := ""
	switch {
	case c.Policy != nil:
		tool = c.Policy.Tool
	case c.SDK != nil:
		tool = c.SDK.Tool
	}
	fmt.Fprintf(w, "Tool call %d of %d: %s, %s\n", n, of, printable(fmt.Sprintf("%q", c.ToolCallID), maxShownName), printable(tool, maxShownName))
	fmt.Fprintf(w, "  SDK     %s\n", v.sdkWords(c))
	fmt.Fprintf(w, "  policy  %s\n", v.policyWords(c.Policy))
	fmt.Fprintf(w, "  kernel  %s\n", v.kernelWords(c))
	if c.Kernel != nil {
		for _, e := range c.Kernel.Effects {
			fmt.Fprintf(w, "            %s\n", printable(e, maxShownEffect))
		}
		if c.Kernel.Cut {
			fmt.Fprintln(w, "            … and others, which the record does not name")
		}
	}
	for _, entry := range c.Ambiguities {
		fmt.Fprintf(w, "  but     %s\n", printable(inWords(entry), maxShownNote))
	}
}

func (v *verifier) sdkWords(c *Call) string {
	switch s := c.SDK; {
	case v.sdkLines() == 0:
		return "no SDK layer"
	case s == nil:
		return "did not mention it"
	default:
		var said []string
		for _, w := range []struct {
			n    uint32
			what string
		}{{s.Started, "started"}, {s.Completed, "completed"}} {
			switch {
			case w.n > 1:
				said = append(said, fmt.Sprintf("%s %d times", w.what, w.n))
			case w.n == 1:
				said = append(said, w.what)
			}
		}
		words := "self-reported: " + strings.Join(said, ", ")
		if c.Policy != nil && s.Tool != c.Policy.Tool {
			words += " (as " + printable(s.Tool, maxShownName) + ")"
		}
		return words
	}
}

func (v *verifier) policyWords(p *CallPolicy) string {
	if p == nil {
		if v.health.PolicyLayer != "present" {
			return "no policy layer"
		}
		return "did not see it"
	}
	words := map[string]string{schemas.DecisionAllow: "allowed it", schemas.DecisionDeny: "denied it"}[p.Decision]
	if words == "" {
		words = "decided " + printable(p.Decision, maxShownName)
	}
	if p.RuleID != "" {
		words += " by rule " + printable(p.RuleID, maxShownName)
	}
	if p.ReasonCode != "" {
		words += " (" + printable(p.ReasonCode, maxShownName) + ")"
	}
	if p.Attempt > 1 {
		words += fmt.Sprintf(", attempt %d", p.Attempt)
	}
	switch {
	case p.Outcome != "":
		words += ", outcome " + printable(p.Outcome, maxShownName)
	case p.IDSource != "":
		words += ", end not seen"
	}
	return words
}

func (v *verifier) kernelWords(c *Call) string {
	k, whole := c.Kernel, c.window == schemas.RunWindow
	window := c.window.Start + " to " + c.window.End
	switch absent := v.health.KernelLayer == schemas.LayerAbsent; {
	case absent && c.Policy != nil && whole:
		return "no kernel layer: nothing is known of its window, which is the whole run"
	case absent && c.Policy != nil:
		return "no kernel layer: nothing is known of its window, " + printable(window, 2*maxShownName)
	case absent:
		return "no kernel layer: nothing is known"
	case k == nil:
		return "has no window for it: its events cannot be told from others"
	}
	least := ""
	if v.health.KernelLayer == schemas.LayerPartial {
		least = "at least "
	}
	window = "from " + window
	if whole {
		window = "in the whole run"
		if k.Events > 0 {
			window += ", which of them are the call's cannot be told"
		}
	}
	words := fmt.Sprintf("saw %s%s %s %s", least, counted(k.Events, "event"), scopeWords[k.Scope], printable(window, 2*maxShownName))
	if c.Policy.Decision == schemas.DecisionDeny && (len(k.Effects) > 0 || k.Cut) {
		words += "; after the denial, of any process, on what the call named:"
	}
	return words
}

func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
