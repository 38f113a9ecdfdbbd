package gatepolicy

import (
	"errors"
	"fmt"

	"github.com/goccy/go-json/jsontext"

	"github.com/runner-evidence/runner/cmd/internal/gate"
	"github.com/runner-evidence/runner/schemas"
)

// answer is the decision of a policy as it writes it. Pointers show what is missing.
type answer struct {
	PolicyVersion *string        `json:"policyVersion"`
	Bundle        *answerItem    `json:"bundle"`
	Files         jsontext.Value `json:"files"`
	Intents       jsontext.Value `json:"intents"`
	Network       jsontext.Value `json:"network"`
	Calls         jsontext.Value `json:"calls"`
}

// answerItem is a decision about one item, or about the whole.
type answerItem struct {
	Index            *int      `json:"index"`
	Type             *string   `json:"type"`
	URL              *string   `json:"url"`
	Method           *string   `json:"method"`
	Allowed          *bool     `json:"allowed"`
	RequiresApproval *bool     `json:"requiresApproval"`
	Reasons          *[]string `json:"reasons"`
	ApprovalReasons  *[]string `json:"approvalReasons"`
}

// Sets of keys of an answerItem.
type itemForm struct{ need, may []string }

var (
	bundleForm  = itemForm{need: []string{"allowed", "requiresApproval", "reasons"}}
	otherForm   = itemForm{need: []string{"index", "type", "allowed", "requiresApproval", "reasons", "approvalReasons"}}
	networkForm = itemForm{need: []string{"url", "allowed", "reasons"}, may: []string{"index", "method", "requiresApproval"}}
)

// readAnswer checks a decision strictly. An item that it does not decide is not allowed.
func readAnswer(s *subjects, b []byte) (*outcome, error) {
	var a answer
	if len(b) == 0 {
		return nil, errors.New("there is no answer")
	}
	if err := schemas.Unmarshal(b, &a); err != nil {
		return nil, fmt.Errorf("the answer is no decision: %w", err)
	}
	switch {
	case a.PolicyVersion == nil:
		return nil, errors.New("the answer has no policyVersion")
	case a.Bundle == nil:
		return nil, errors.New("the answer has no bundle")
	case len(a.Intents) == 0 || len(a.Network) == 0:
		return nil, errors.New("the answer has not both intents and network")
	case len(*a.PolicyVersion) > maxVersion:
		return nil, fmt.Errorf("policyVersion has %d bytes, at most %d", len(*a.PolicyVersion), maxVersion)
	}
	if err := a.Bundle.check(bundleForm); err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	o := &outcome{version: *a.PolicyVersion, approval: *a.Bundle.RequiresApproval}
	if !*a.Bundle.Allowed {
		if o.denied = *a.Bundle.Reasons; len(o.denied) == 0 {
			o.denied = []string{reasonBundle}
		}
	}
	for c, list := range [4]jsontext.Value{a.Files, a.Intents, a.Network, a.Calls} {
		if len(list) == 0 {
			o.asBundle(c, s[c], *a.Bundle.Allowed)
			continue
		}
		var items []answerItem
		if err := schemas.Unmarshal(list, &items); err != nil || items == nil {
			return nil, fmt.Errorf("the decisions of the class %s are no list of decisions: %w", classes[c].name, errors.Join(err, errors.New("expected an array")))
		}
		if err := o.class(c, s[c], items); err != nil {
			return nil, fmt.Errorf("a decision of the class %s: %w", classes[c].name, err)
		}
	}
	return o, nil
}

const maxVersion = 64 // bytes

// asBundle decides a class that a policy leaves out as it decides the whole.
func (o *outcome) asBundle(c int, views []view, allowed bool) {
	for range views {
		v := verdict{allowed: allowed}
		if !allowed {
			v.reasons = []string{reasonBundle}
		}
		o.items[c] = append(o.items[c], v)
	}
}

// class reads the decisions about one class.
func (o *outcome) class(c int, views []view, items []answerItem) error {
	at := make(map[int]int, len(views)) // of an index
	like := map[[2]string][]int{}       // of a URL and a method
	o.items[c] = make([]verdict, len(views))
	for i := range views {
		at[views[i].index] = i
		o.items[c][i] = verdict{reasons: []string{reasonUndecided}}
		if x, is := views[i].item.(*gate.Exchange); is {
			like[[2]string{x.URL, x.Method}] = append(like[[2]string{x.URL, x.Method}], i)
		}
	}
	form := otherForm
	if classes[c].class == classNetwork {
		form = networkForm
	}
	decided, byIndex := make([]bool, len(views)), make([]bool, len(views))
	for n := range items {
		x := &items[n]
		if err := x.check(form); err != nil {
			return fmt.Errorf("number %d: %w", n+1, err)
		}
		var about []int
		if x.Index != nil {
			i, is := at[*x.Index]
			if !is || byIndex[i] {
				return fmt.Errorf("number %d: index %d is that of no item, or there twice", n+1, *x.Index)
			}
			byIndex[i], about = true, []int{i}
		} else {
			about = like[[2]string{*x.URL, x.method()}]
		}
		for _, i := range about {
			if err := x.about(&views[i]); err != nil {
				return fmt.Errorf("number %d: %w", n+1, err)
			}
			o.items[c][i] = x.verdict(o.items[c][i], decided[i])
			decided[i] = true
		}
	}
	return nil
}

// check checks that a decision has the keys of a form, and no other.
func (x *answerItem) check(f itemForm) error {
	has := map[string]bool{"index": x.Index != nil, "type": x.Type != nil, "url": x.URL != nil, "method": x.Method != nil, "allowed": x.Allowed != nil,
		"requiresApproval": x.RequiresApproval != nil, "reasons": x.Reasons != nil, "approvalReasons": x.ApprovalReasons != nil}
	for _, k := range f.need {
		if !has[k] {
			return fmt.Errorf("the key %s is missing", k)
		}
		delete(has, k)
	}
	for _, k := range f.may {
		delete(has, k)
	}
	for _, k := range []string{"index", "type", "url", "method", "requiresApproval", "approvalReasons"} {
		if has[k] {
			return fmt.Errorf("the key %s, which this decision does not have", k)
		}
	}
	return nil
}

// method is that of a request; "" where there is none, as of bytes that are not HTTP.
func (x *answerItem) method() string {
	if x.Method == nil {
		return ""
	}
	return *x.Method
}

// about reports a decision that names another item than its index does.
func (x *answerItem) about(v *view) error {
	if e, is := v.item.(*gate.Exchange); is {
		if *x.URL != e.URL || x.method() != e.Method {
			return fmt.Errorf("index %d is another request", v.index)
		}
		return nil
	}
	if *x.Type != v.kind {
		return fmt.Errorf("index %d is of another type", v.index)
	}
	return nil
}

// verdict is a decision about an item, with those before it if there were any: all of them must allow.
func (x *answerItem) verdict(before verdict, decided bool) verdict {
	v := verdict{allowed: *x.Allowed, approval: x.RequiresApproval != nil && *x.RequiresApproval}
	if !v.allowed {
		v.reasons = clipped(*x.Reasons)
	}
	if x.ApprovalReasons != nil {
		v.approvals = clipped(*x.ApprovalReasons)
	}
	if decided {
		v.allowed, v.approval = v.allowed && before.allowed, v.approval || before.approval
		v.reasons, v.approvals = append(v.reasons, before.reasons...), append(v.approvals, before.approvals...)
	}
	return v
}

func clipped(list []string) []string {
	out := make([]string, 0, min(len(list), maxReasons))
	for _, s := range list {
		out = append(out, clip(s))
	}
	return out
}
