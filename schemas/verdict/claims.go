package verdict

import (
	"fmt"

	"github.com/runner-evidence/runner/schemas"
)

// The claims that a record of tool calls allows about each call, and those that it never
// allows.
const (
	FullClaim      = "Tool-call T occurred in window W, policy saw T, and kernel events K were observed inside the measured cgroup during W."
	PolicyClaim    = "Tool-call T occurred in window W, and policy saw T."
	ForbiddenClaim = "Tool-call T caused syscall S at timestamp N."
)

// AllowedClaim is the claim that a record allows about each of its bindings. A binding is
// a decision of the policy. A call that only the SDK reported has no binding, and nothing
// is claimed about it.
func AllowedClaim(kernelLayer string, bindings int) string {
	switch {
	case bindings == 0:
		return ""
	case kernelLayer == schemas.LayerAbsent:
		return PolicyClaim
	}
	return FullClaim
}

// maxBindingClaims is how many tool calls have their own sentence.
const maxBindingClaims = 20

// NonClaims are claims that no archive supports.
var NonClaims = []string{
	"that a tool call caused any kernel event, or when within its window. Never: " + ForbiddenClaim,
	"that nothing else happened: blind spots are in the notes, and values are only those of the attached hooks",
	"that what an SDK reports about itself is true",
	"that a policy proxy wrote the decisions: every process of the run could write to their log",
	"that the network endpoints are the exact set of peers",
	"who made the archive: a digest is not a signature",
}

// Claims are the claims of a valid archive, in sentences.
func Claims(rec *Record, bindings []schemas.Binding) []string {
	observed := counted(rec.KernelEvents, "kernel event") + was(rec.KernelEvents) + " observed inside the measured cgroup between run_started and run_finished"
	var out []string
	switch rec.KernelLayer {
	case schemas.LayerComplete:
		out = append(out, observed+", and no loss was counted")
	case schemas.LayerPartial:
		out = append(out, fmt.Sprintf("%s; others were lost (%s counted)", observed, counted(rec.RingbufDrops, "drop")))
	default:
		out = append(out, "nothing about the kernel: the layer is absent, its lines carry no claim")
	}
	out = append(append(out, leftOut(rec.Notes)...), wrapped(rec.Notes)...)
	if claim := AllowedClaim(rec.KernelLayer, len(bindings)); claim != "" {
		out = append(out, "of each tool call that the policy decided: "+claim)
	}
	for i := range bindings {
		if i == maxBindingClaims {
			out = append(out, "the same of "+counted(uint64(len(bindings)-i), "more tool call"))
			break
		}
		out = append(out, bindingClaim(rec.KernelLayer, &bindings[i]))
	}
	if rec.SDKEvents > 0 {
		out = append(out, fmt.Sprintf("the agent's SDK reported %s about itself", counted(rec.SDKEvents, "event")))
	}
	return append(out, intended(rec.Notes)...)
}

// intended says how many intents there are.
func intended(notes []string) (out []string) {
	for _, note := range notes {
		if v, err := schemas.NoteIntents.Parse(note); err == nil {
			n, _ := v.Count(schemas.KeyIntents)
			out = append(out, fmt.Sprintf("the command itself reported %s: what it wants to have done, of which the run did nothing", counted(n, "intent")))
		}
	}
	return out
}

// leftOut says what runner-normalize left out of the kernel layer, where its notes say so.
func leftOut(notes []string) (out []string) {
	for _, note := range notes {
		if v, err := schemas.NoteNoise.Parse(note); err == nil {
			values, _ := v.Count(schemas.KeyValues)
			omitted, _ := v.Count(schemas.KeyOmitted)
			table, _ := v.Get(schemas.KeyTable)
			text := fmt.Sprintf("plain reads of %s were left out as noise (rules %s)", counted(values+omitted, "path"), table)
			switch {
			case table == schemas.NoiseNone:
				text = "no read was left out as noise"
			case omitted > 0:
				text += fmt.Sprintf(": %d of them are in the layer filtered, which had no room for the others", values)
			case values > 0:
				text += ": the layer filtered has all of them"
			}
			out = append(out, text)
		}
		if v, err := schemas.NoteDrop.Parse(note); err == nil {
			if n, _ := v.Count(schemas.KeyDropped); n > 0 {
				out = append(out, counted(n, "kernel line")+was(n)+" left out by the program of --drop, which a note has")
			}
		}
	}
	return out
}

// bindingClaim is the allowed claim about one tool call. If its window is the whole run,
// it is not known which events belong to the call.
func bindingClaim(kernelLayer string, b *schemas.Binding) string {
	window, rest := b.Window.Start+" to "+b.Window.End, ""
	if b.Window == schemas.RunWindow {
		window += " (the whole run)"
		if b.KernelEventCount > 0 {
			rest = "; which of them are the call's is not known"
		}
	}
	s := fmt.Sprintf("tool call %q occurred in the window %s, ", b.ToolCallID, window)
	saw := fmt.Sprintf("policy saw it (%s)", *b.PolicyDecision)
	if kernelLayer == schemas.LayerAbsent {
		return s + "and " + saw
	}
	n := b.KernelEventCount
	return s + fmt.Sprintf("%s, and %s %s%s observed inside the measured cgroup during it%s", saw, counted(n, "kernel event"), scopeWords[b.KernelScope], was(n), rest)
}

// scopeWords say whose events a binding counts.
var scopeWords = map[string]string{"": "of all processes", schemas.ScopeToolServer: "of the tool server's processes",
	schemas.ScopeRun: "of all processes except known tool servers"}

func was(n uint64) string {
	if n == 1 {
		return " was"
	}
	return " were"
}

func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
