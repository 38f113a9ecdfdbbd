package gatepolicy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/gate"
)

// Bounds of what a decision says.
const (
	maxReasons = 64  // of one item, or of the whole
	maxReason  = 400 // bytes of one
)

// verdict is what a policy says of one item.
type verdict struct {
	allowed, approval  bool
	rule               string
	reasons, approvals []string
}

// outcome is what a policy says of all items.
type outcome struct {
	version  string
	items    [4][]verdict // in the order of the subjects
	denied   []string     // why the whole is not allowed, whatever the items are
	approval bool         // of the whole
}

// decision is the document of an outcome. Whatever a policy says, what cannot be done is not allowed, and the whole is not
// if an item is not.
func (o *outcome) decision(s *subjects) *gate.Decision {
	d := &gate.Decision{PolicyVersion: o.version, Files: []gate.ItemDecision{}, Intents: []gate.ItemDecision{}, Network: []gate.NetworkDecision{}, Calls: []gate.ItemDecision{}}
	reasons := map[string]bool{}
	for _, why := range o.denied {
		reasons[clip(why)] = true
	}
	d.Bundle.RequiresApproval = o.approval
	for c := range s {
		for i := range s[c] {
			view, v := &s[c][i], o.items[c][i]
			if view.never != "" {
				v.allowed, v.reasons = false, append(v.reasons, view.never)
			}
			if v.allowed {
				v.reasons = nil
			} else if len(v.reasons) == 0 {
				v.reasons = []string{reasonPolicy}
			}
			v.reasons, v.approvals = set(v.reasons), set(v.approvals)
			for _, why := range v.reasons {
				reasons[why] = true
			}
			d.Bundle.RequiresApproval = d.Bundle.RequiresApproval || v.approval
			addDecision(d, view, v)
		}
	}
	d.Bundle.Reasons = set(keys(reasons))
	d.Bundle.Allowed = len(d.Bundle.Reasons) == 0
	return d
}

func addDecision(d *gate.Decision, view *view, v verdict) {
	if view.class == classNetwork {
		x := view.item.(*gate.Exchange)
		d.Network = append(d.Network, gate.NetworkDecision{Index: view.index, URL: x.URL, Method: x.Method, Allowed: v.allowed, RequiresApproval: v.approval, Reasons: v.reasons, Rule: v.rule})
		return
	}
	list := map[class]*[]gate.ItemDecision{classFile: &d.Files, classIntent: &d.Intents, classCall: &d.Calls}[view.class]
	*list = append(*list, gate.ItemDecision{Index: view.index, Type: view.kind, Allowed: v.allowed, RequiresApproval: v.approval, Reasons: v.reasons, ApprovalReasons: v.approvals, Rule: v.rule})
}

func keys(m map[string]bool) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	return list
}

// set sorts texts, each once. Of too many the first ones stay, and the last text says how many others there were.
func set(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	list = slices.Compact(list)
	if n := len(list) - maxReasons; n > 0 {
		list = append(list[:maxReasons], fmt.Sprintf("~ %d more", n)) // ~ is after all letters
	}
	return append([]string{}, list...)
}

// clip shortens a text, at a character.
func clip(s string) string {
	if len(s) <= maxReason {
		return s
	}
	n := maxReason
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// unite sorts requirements, each once.
func unite(list []gate.Requirement) []gate.Requirement {
	slices.SortFunc(list, compareRequirements)
	return slices.CompactFunc(list, func(a, b gate.Requirement) bool { return compareRequirements(a, b) == 0 })
}

func compareRequirements(a, b gate.Requirement) int {
	return cmp.Or(cmp.Compare(a.Why, b.Why), cmp.Compare(a.Count, b.Count), slices.Compare(a.Keys, b.Keys))
}
