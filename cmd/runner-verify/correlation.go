package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The correlation report is derived again from the layers. This file holds what
// is asked of every report, and the rules of the v0 contract, which hold for the
// archives of other implementations. Those of this runner are in windows.go and
// codes.go.

// checkBinding compares the binding in the place of a decision. The kernel layer
// stands before the policy layer, so its count is known.
func (v *verifier) checkBinding(i int) {
	const member = bundle.ReportName
	if v.report == nil || i >= len(v.report.Bindings) {
		return // checkReport counts them
	}
	b, d := &v.report.Bindings[i], &v.policy.list[i]
	fault := func(format string, a ...any) {
		v.add(ruleReportBindings, member, 0, "binding %d: "+format, append([]any{i}, a...)...)
	}
	switch {
	case b.ToolCallID != d.id:
		fault("tool_call_id is %q, the policy layer says %q", b.ToolCallID, d.id)
	case b.PolicyDecision == nil:
		fault("policy_decision is null, the policy layer says %q", d.verdict)
	case *b.PolicyDecision != d.verdict:
		fault("policy_decision is %q, the policy layer says %q", *b.PolicyDecision, d.verdict)
	}
	if v.events.own() {
		v.ownBinding(b, d, fault)
		return
	}
	if b.KernelEventCount != v.kernel.lines && v.sound(bundle.KernelName) {
		fault("kernel_event_count is %d, the kernel layer has %d lines", b.KernelEventCount, v.kernel.lines)
	}
	if b.Window != schemas.RunWindow {
		fault("window is %q to %q, expected %q to %q", b.Window.Start, b.Window.End, schemas.WindowRunStarted, schemas.WindowRunFinished)
	}
	if b.KernelScope != "" || b.KernelEffects != nil || b.EffectsCut {
		fault("has keys that only reports of this runner have")
	}
}

// checkReport compares what is said about the run as a whole.
func (v *verifier) checkReport() {
	const member = bundle.ReportName
	r, decisions := v.report, v.policy.lines
	if uint64(len(r.Bindings)) != decisions {
		v.add(ruleReportBindings, member, 0, "%d bindings, the policy layer has %d decisions", len(r.Bindings), decisions)
	}
	captured := len(v.noteFields(noteKernel)) > 0
	if v.events.own() {
		v.ownReport(captured)
		return
	}
	for i, b := range r.Bindings {
		// One cgroup can be said to be a decision's own only if there is one decision.
		if b.CgroupID != nil && (decisions != 1 || !captured) {
			v.add(ruleReportBindings, member, 0, "binding %d: has a cgroup_id, which is known for one decision in a kernel capture alone", i)
		}
	}
	v.checkAmbiguities(captured)
	want := schemas.CorrelationClean
	if len(r.Ambiguities) > 0 {
		want = schemas.CorrelationPartial
	}
	if r.Status != want {
		v.add(ruleReportStatus, member, 0, "status is %s, with %d ambiguities it must be %s", r.Status, len(r.Ambiguities), want)
	}
}

// checkAmbiguities compares the list with the one that follows from the layers.
// Their order is that of the rules or of the bytes.
func (v *verifier) checkAmbiguities(captured bool) {
	const member = bundle.ReportName
	var want []string
	if v.policy.lines > 0 && v.kernel.lines == 0 {
		want = append(want, schemas.AmbiguityNoKernelEvents)
	}
	has := v.report.Ambiguities
	// Whether the other implementation knew a cgroup for its run is not in its
	// archives: it leaves this code out when it did not.
	if v.policy.lines > 1 && captured && slices.Contains(has, schemas.AmbiguityManyDecisions) {
		want = append(want, schemas.AmbiguityManyDecisions)
	}
	if v.policy.lines > 0 {
		for _, id := range sortedKeys(v.sdk.calls) {
			if v.policy.byID[id] == nil {
				want = append(want, schemas.AmbiguitySDKUnbound+":"+id)
			}
		}
	}
	if slices.Equal(has, want) {
		return
	}
	sorted := slices.Sorted(slices.Values(want))
	if slices.Equal(has, sorted) {
		return
	}
	n := v.alike[[2]string{ruleReportAmbiguity, member}]
	v.lacking(want, has, "%q is missing, it follows from the layers")
	v.lacking(has, want, "%q does not follow from the layers")
	if v.alike[[2]string{ruleReportAmbiguity, member}] == n {
		v.add(ruleReportAmbiguity, member, 0, "the codes are repeated or not in order")
	}
}

// lacking reports the codes of a that b does not have.
func (v *verifier) lacking(a, b []string, format string) {
	in := map[string]bool{}
	for _, code := range b {
		in[code] = true
	}
	for _, code := range a {
		if !in[code] {
			v.add(ruleReportAmbiguity, bundle.ReportName, 0, format, code)
		}
	}
}
