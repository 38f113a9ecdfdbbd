package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The correlation report is derived again from the layers. This file has the rules
// for every report, and those for the reports of other implementations.

func (v *verifier) faultBinding(i int, format string, a ...any) {
	v.add(ruleReportBindings, bundle.ReportName, 0, "binding %d: "+format, append([]any{i}, a...)...)
}

func (v *verifier) faultCode(format string, a ...any) {
	v.add(ruleReportAmbiguity, bundle.ReportName, 0, format, a...)
}

// eachBinding calls f for every binding that has a decision in its place.
func (v *verifier) eachBinding(f func(i int, b *schemas.Binding, d *decision)) {
	if v.report == nil {
		return
	}
	for i := range min(len(v.report.Bindings), len(v.policy.list)) {
		f(i, &v.report.Bindings[i], &v.policy.list[i])
	}
}

// bindings checks that every binding is that of the decision in its place.
func (v *verifier) bindings() {
	v.eachBinding(func(i int, b *schemas.Binding, d *decision) {
		switch {
		case b.ToolCallID != d.id:
			v.faultBinding(i, "tool_call_id is %q, the policy layer says %q", b.ToolCallID, d.id)
		case b.PolicyDecision == nil:
			v.faultBinding(i, "policy_decision is null, the policy layer says %q", d.verdict)
		case *b.PolicyDecision != d.verdict:
			v.faultBinding(i, "policy_decision is %q, the policy layer says %q", *b.PolicyDecision, d.verdict)
		}
	})
}

func (v *verifier) bindingCount() {
	if n := len(v.report.Bindings); uint64(n) != v.policyLines() {
		v.add(ruleReportBindings, bundle.ReportName, 0, "%d bindings, the policy layer has %d decisions", n, v.policyLines())
	}
}

// contractBindings checks that a binding counts the whole layer in the whole run.
func (v *verifier) contractBindings() {
	sound := v.sound(bundle.KernelName)
	v.eachBinding(func(i int, b *schemas.Binding, _ *decision) {
		if b.KernelEventCount != v.kernelLines() && sound {
			v.faultBinding(i, "kernel_event_count is %d, the kernel layer has %d lines", b.KernelEventCount, v.kernelLines())
		}
		if b.Window != schemas.RunWindow {
			v.faultBinding(i, "window is %q to %q, expected %q to %q", b.Window.Start, b.Window.End, schemas.WindowRunStarted, schemas.WindowRunFinished)
		}
		if b.KernelScope != "" || b.KernelEffects != nil || b.EffectsCut || b.Join != "" {
			v.faultBinding(i, "has keys that only reports of this runner have")
		}
	})
}

// captured reports whether the kernel was observed.
func (v *verifier) captured() bool { return len(v.noteFields(schemas.NoteKernel)) > 0 }

// contractCgroups: one cgroup can be said to be a decision's own only if there is
// one decision.
func (v *verifier) contractCgroups() {
	for i, b := range v.report.Bindings {
		if b.CgroupID != nil && (v.policyLines() != 1 || !v.captured()) {
			v.faultBinding(i, "has a cgroup_id, which is known only for one decision in a kernel capture")
		}
	}
}

func (v *verifier) contractStatus() {
	r, want := v.report, schemas.CorrelationClean
	if len(r.Ambiguities) > 0 {
		want = schemas.CorrelationPartial
	}
	if r.Status != want {
		v.add(ruleReportStatus, bundle.ReportName, 0, "status is %s, with %d ambiguities it must be %s", r.Status, len(r.Ambiguities), want)
	}
}

// contractAmbiguities compares the list with the one that follows from the layers.
// Its order is that of the rules or of the bytes.
func (v *verifier) contractAmbiguities() {
	if len(v.report.Notes) > 0 {
		v.faultCode("has notes, which only reports of this runner have")
	}
	has, want := v.report.Ambiguities, v.expectedAmbiguities()
	if slices.Equal(has, want) || slices.Equal(has, slices.Sorted(slices.Values(want))) {
		return
	}
	missing := v.lacking(want, has, "%q is missing, it follows from the layers")
	extra := v.lacking(has, want, "%q does not follow from the layers")
	if !missing && !extra {
		v.faultCode("the codes are repeated or not in order")
	}
}

// expectedAmbiguities are those that the v0 contract derives.
func (v *verifier) expectedAmbiguities() (want []string) {
	if v.policyLines() > 0 && v.kernelLines() == 0 {
		want = append(want, schemas.AmbiguityNoKernelEvents)
	}
	// Whether the other implementation knew a cgroup for its run is not in its
	// archives: it leaves this code out when it did not.
	if v.policyLines() > 1 && v.captured() && slices.Contains(v.report.Ambiguities, schemas.AmbiguityManyDecisions) {
		want = append(want, schemas.AmbiguityManyDecisions)
	}
	if v.policyLines() > 0 {
		for _, id := range sortedKeys(v.sdk.calls) {
			if v.policy.byID[id] == nil {
				want = append(want, schemas.AmbiguitySDKUnbound+":"+id)
			}
		}
	}
	return want
}

// lacking reports the codes of a that b does not have, and whether there are any.
func (v *verifier) lacking(a, b []string, format string) (found bool) {
	in := map[string]bool{}
	for _, code := range b {
		in[code] = true
	}
	for _, code := range a {
		if !in[code] {
			v.faultCode(format, code)
			found = true
		}
	}
	return found
}
