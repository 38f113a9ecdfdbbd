package main

import (
	"fmt"

	"github.com/runner-evidence/runner/schemas"
)

// What a record of tool calls can allow to be said of each, and what none allows.
const (
	fullClaim      = "Tool-call T occurred in window W, policy saw T, and kernel events K were observed inside the measured cgroup during W."
	policyClaim    = "Tool-call T occurred in window W, and policy saw T."
	forbiddenClaim = "Tool-call T caused syscall S at timestamp N."
)

// allowedClaim is what a record allows to be said of each of its bindings. A
// binding is a decision of the policy: a call that the SDK alone reported has
// none, and nothing is claimed of it.
func allowedClaim(kernelLayer string, bindings int) string {
	switch {
	case bindings == 0:
		return ""
	case kernelLayer == schemas.LayerAbsent:
		return policyClaim
	}
	return fullClaim
}

// maxBindingClaims is how many tool calls are spelled out.
const maxBindingClaims = 20

// nonClaims are what no archive says, however clean it is.
var nonClaims = []string{
	"that a tool call caused any kernel event, or when within its window. Never: " + forbiddenClaim,
	"that nothing else happened: blind spots are in the notes, and values are those of the attached hooks alone",
	"that what an SDK reports about itself is true",
	"that a policy proxy wrote the decisions: every process of the run could write to their log",
	"that the network endpoints are the exact set of peers",
	"who made the archive: a digest is not a signature",
}

// claims are what a valid archive says, in sentences.
func (v *verifier) claims() []string {
	h := v.health
	observed := counted(v.kernelLines(), "kernel event") + was(v.kernelLines()) + " observed inside the measured cgroup between run_started and run_finished"
	var out []string
	switch h.KernelLayer {
	case schemas.LayerComplete:
		out = append(out, observed+", and no loss was counted")
	case schemas.LayerPartial:
		out = append(out, fmt.Sprintf("%s; others were lost (%s counted)", observed, counted(h.RingbufDrops, "drop")))
	default:
		out = append(out, "nothing about the kernel: the layer is absent, its lines carry no claim")
	}
	if claim := allowedClaim(h.KernelLayer, len(v.report.Bindings)); claim != "" {
		out = append(out, "of each tool call that the policy decided: "+claim)
	}
	for i := range v.report.Bindings {
		if i == maxBindingClaims {
			out = append(out, "the same of "+counted(uint64(len(v.report.Bindings)-i), "more tool call"))
			break
		}
		out = append(out, bindingClaim(h.KernelLayer, &v.report.Bindings[i]))
	}
	if v.sdkLines() > 0 {
		out = append(out, fmt.Sprintf("the agent's SDK reported %s about itself", counted(v.sdkLines(), "event")))
	}
	return out
}

// bindingClaim is the allowed claim of one tool call, and no more than that: of a
// window that is the whole run, nobody can tell what in it is the call's.
func bindingClaim(kernelLayer string, b *schemas.Binding) string {
	window, rest := b.Window.Start+" to "+b.Window.End, ""
	if b.Window == schemas.RunWindow {
		window += " (the whole run)"
		if b.KernelEventCount > 0 {
			rest = "; which of them are the call's cannot be told"
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
	schemas.ScopeRun: "of all processes but known tool servers"}

func was(n uint64) string {
	if n == 1 {
		return " was"
	}
	return " were"
}
