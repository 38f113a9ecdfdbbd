package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// Calls that were joined by the digest of their arguments. The report says which; the layers must allow it.

// joins are the places of the bindings that were joined with a call of the SDK, by its id. The report is read before
// the layers.
func (v *verifier) joins() map[string]int {
	if v.joined == nil {
		v.joined = map[string]int{}
		if v.report != nil {
			for i := range v.report.Bindings {
				b := &v.report.Bindings[i]
				if _, there := v.joined[b.SDKCallID]; b.Join != "" && !there {
					v.joined[b.SDKCallID] = i
				}
			}
		}
	}
	return v.joined
}

// placesOf are the places of the decisions about a call of the SDK: those of its id, or the one that was joined.
func (v *verifier) placesOf(sdkID string) []int {
	if places := v.policy.byID[sdkID]; places != nil {
		return places
	}
	if i, ok := v.joins()[sdkID]; ok && i < len(v.policy.list) {
		return []int{i}
	}
	return nil
}

// joinOf is the id of the SDK's call that a decision was joined with, "" for none.
func (v *verifier) joinOf(place int) string {
	if place >= len(v.report.Bindings) {
		return ""
	}
	return v.report.Bindings[place].SDKCallID
}

// profileJoins checks that joined calls have one partner each, with the same arguments and tool, and none by an id.
func (v *verifier) profileJoins() {
	calls, decisions := map[string][]*sdkCall{}, map[string][]*decision{} // of each digest
	for _, s := range v.sdk.calls {
		calls[s.arguments] = append(calls[s.arguments], s)
	}
	for i := range v.policy.list {
		d := &v.policy.list[i]
		decisions[d.arguments] = append(decisions[d.arguments], d)
	}
	v.eachBinding(func(i int, b *schemas.Binding, d *decision) {
		s := v.sdk.calls[b.SDKCallID]
		switch {
		case (b.Join != "") != (d.arguments != ""):
			v.faultBinding(i, "join and the arguments_digest of the policy line go together")
			return
		case b.Join == "":
			return
		case !d.timed:
			v.faultBinding(i, "has a join, but no session of runner-policy decided it")
		case d.key != schemas.CallIDDeclared:
			v.faultBinding(i, "has a join, but the client gave the call an id")
		case s == nil || s.arguments != d.arguments:
			v.faultBinding(i, "is joined with the SDK's call %.200q, which has not its arguments_digest", b.SDKCallID)
		case v.sdk.calls[d.id] != nil || v.policy.byID[b.SDKCallID] != nil:
			v.faultBinding(i, "has a join, but the ids of the two layers name a partner")
		case v.joins()[b.SDKCallID] != i:
			v.faultBinding(i, "is joined with the SDK's call %.200q, and so is another", b.SDKCallID)
		case len(decisions[d.arguments]) > schemas.MaxSameArguments || others(s, d, calls[s.arguments], decisions[d.arguments]):
			v.faultBinding(i, "is joined by a digest that other calls of this tool have too")
		}
	})
}

// others reports whether another of the SDK's calls, or another of the decisions, is of the same tool.
func others(s *sdkCall, d *decision, calls []*sdkCall, decisions []*decision) bool {
	same := func(sdk, tool string) bool { _, ok := schemas.ToolPrefix(sdk, tool); return ok }
	return !same(s.tool, d.tool) ||
		slices.ContainsFunc(calls, func(o *sdkCall) bool { return o != s && same(o.tool, d.tool) }) ||
		slices.ContainsFunc(decisions, func(o *decision) bool { return o != d && same(s.tool, o.tool) })
}
