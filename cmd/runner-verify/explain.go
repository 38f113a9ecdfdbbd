package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// explain puts the layers of a valid record side by side, call by call.
func (v *verifier) explain() *verdict.Explanation {
	x := &verdict.Explanation{AllowedClaim: verdict.AllowedClaim(v.health.KernelLayer, len(v.report.Bindings)),
		ForbiddenClaim: verdict.ForbiddenClaim, Calls: []verdict.Call{}, Ambiguities: []string{}, KernelClasses: v.kernelClasses(), Surface: v.surface.explain(),
		Refusals: v.explainRefusals()}
	codes, notes := map[string][]string{}, map[string][]string{}
	for _, of := range []struct {
		entries []string
		calls   map[string][]string
		rest    *[]string
	}{{v.report.Ambiguities, codes, &x.Ambiguities}, {v.report.Notes, notes, &x.Notes}} {
		for _, entry := range of.entries {
			a, err := schemas.ParseCode(entry)
			if err == nil && a.Arg == schemas.ArgID && (v.policy.byID[a.Value] != nil || v.sdk.calls[a.Value] != nil) {
				of.calls[a.Value] = append(of.calls[a.Value], entry)
			} else {
				*of.rest = append(*of.rest, entry)
			}
		}
	}
	for i := range v.policy.list {
		x.Calls = append(x.Calls, v.explainDecision(i, codes, notes))
	}
	for _, id := range sortedKeys(v.sdk.calls) {
		if v.placesOf(id) == nil {
			x.Calls = append(x.Calls, verdict.Call{ToolCallID: id, SDK: v.sdkSaid(id), Ambiguities: about(codes, id), Notes: notes[id]})
		}
	}
	return x
}

// explainDecision is the call of the decision in a place.
func (v *verifier) explainDecision(i int, codes, notes map[string][]string) verdict.Call {
	d, b := &v.policy.list[i], &v.report.Bindings[i]
	sdkID := d.id
	if found := v.joinOf(i); found != "" {
		sdkID = found
		codes[d.id], notes[d.id] = append(codes[d.id], codes[found]...), append(notes[d.id], notes[found]...)
	}
	c := verdict.Call{ToolCallID: d.id, SDK: v.sdkSaid(sdkID), Ambiguities: about(codes, d.id), Notes: notes[d.id], Join: b.Join, SDKCallID: b.SDKCallID,
		Policy: &verdict.CallPolicy{Tool: d.tool, Decision: d.verdict, ReasonCode: d.reason, RuleID: d.rule,
			Outcome: d.outcome, IDSource: d.key, Attempt: d.attempt, WouldDeny: d.would, Targets: d.targets, TargetsCut: d.cut || d.unkept}}
	if v.health.KernelLayer == schemas.LayerAbsent {
		c.Window = &b.Window
	} else {
		c.Kernel = &verdict.CallKernel{Window: b.Window, Scope: b.KernelScope, Events: b.KernelEventCount,
			Effects: append([]string{}, b.KernelEffects...), Cut: b.EffectsCut}
	}
	return c
}

// kernelClasses are the classes of kernel lines, nil where they are not known.
func (v *verifier) kernelClasses() *verdict.KernelClasses {
	if v.health.KernelLayer == schemas.LayerAbsent || !v.writtenByRunner() || !v.noted(schemas.NoteWindows) {
		return nil
	}
	return &verdict.KernelClasses{Call: v.class(schemas.ClassCall), Setup: v.class(schemas.ClassSetup),
		Idle: v.class(schemas.ClassIdle), Agent: v.class(schemas.ClassAgent), Request: v.class(schemas.ClassRequest)}
}

// explainRefusals are the refusals of each kind of rules that refused something.
func (v *verifier) explainRefusals() (list []verdict.Refusals) {
	for i := range v.kernel.refused {
		if r := &v.kernel.refused[i]; r.lines > 0 {
			ids := schemas.Enforcements[i].IDsIn(v.health.Notes)
			for n := range r.first {
				if rule := r.first[n].Rule; rule != nil {
					r.first[n].RuleID = ids.Of(*rule)
				}
			}
			list = append(list, verdict.Refusals{Rules: schemas.Enforcements[i].What, Lines: r.lines, First: r.first})
		}
	}
	return list
}

func about(codes map[string][]string, id string) []string {
	return append([]string{}, slices.Clone(codes[id])...)
}

func (v *verifier) sdkSaid(id string) *verdict.CallSDK {
	s := v.sdk.calls[id]
	if s == nil {
		return nil
	}
	return &verdict.CallSDK{Tool: s.tool, Started: s.started, Completed: s.completed}
}
