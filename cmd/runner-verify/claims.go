package main

import (
	"fmt"

	"runner/schemas"
)

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
	var out []string
	switch h.KernelLayer {
	case schemas.LayerComplete:
		out = append(out, fmt.Sprintf("%d kernel events were observed inside the measured cgroup between run_started and run_finished, and no loss was counted", v.kernel.lines))
	case schemas.LayerPartial:
		out = append(out, fmt.Sprintf("%d kernel events were observed inside the measured cgroup between run_started and run_finished; others were lost (%d drops counted)", v.kernel.lines, h.RingbufDrops))
	default:
		out = append(out, "nothing about the kernel: the layer is absent, its lines carry no claim")
	}
	if len(v.report.Bindings) > 0 {
		out = append(out, "of each tool call: "+allowedClaim)
	}
	for i, b := range v.report.Bindings {
		if i == maxBindingClaims {
			out = append(out, fmt.Sprintf("the same of %d more tool calls", len(v.report.Bindings)-i))
			break
		}
		window := b.Window.Start + " to " + b.Window.End
		s := fmt.Sprintf("tool call %q occurred in the window %s, policy saw it (%s)", b.ToolCallID, window, *b.PolicyDecision)
		if h.KernelLayer != schemas.LayerAbsent {
			whose := ""
			if b.KernelScope == schemas.ScopeToolServer {
				whose = " of its tool server's processes"
			}
			s += fmt.Sprintf(", and %d kernel events%s were observed inside the measured cgroup during it", b.KernelEventCount, whose)
		}
		out = append(out, s)
	}
	if v.sdk.lines > 0 {
		out = append(out, fmt.Sprintf("the agent's SDK reported %d events about itself", v.sdk.lines))
	}
	return out
}
