package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// Explanation is what --explain adds: the tool calls, and what each layer says.
type Explanation struct {
	AllowedClaim   string   `json:"allowed_claim,omitempty"` // absent when the policy decided no call
	ForbiddenClaim string   `json:"forbidden_claim"`
	Calls          []Call   `json:"calls"`       // decisions in order, then what the SDK alone reported
	Ambiguities    []string `json:"ambiguities"` // that are about no call
}

// Call is one tool call as the three layers have it.
type Call struct {
	ToolCallID  string         `json:"tool_call_id"`
	SDK         *CallSDK       `json:"sdk"`    // null when the SDK did not mention it
	Policy      *CallPolicy    `json:"policy"` // null when the policy did not see it
	Kernel      *CallKernel    `json:"kernel"` // null without a decision or a kernel layer
	Ambiguities []string       `json:"ambiguities"`
	window      schemas.Window // of the binding; empty without a decision
}

// CallSDK is what the SDK reported about itself.
type CallSDK struct {
	Tool      string `json:"tool"`
	Started   uint32 `json:"started"`
	Completed uint32 `json:"completed"`
}

// CallPolicy is what the policy decided.
type CallPolicy struct {
	Tool       string `json:"tool"`
	Decision   string `json:"decision"`
	ReasonCode string `json:"reason_code,omitempty"`
	RuleID     string `json:"rule_id,omitempty"`
	Outcome    string `json:"outcome,omitempty"`
	IDSource   string `json:"tool_call_id_source,omitempty"`
	Attempt    uint64 `json:"attempt"`
}

// CallKernel is what the kernel saw in the call's window.
type CallKernel struct {
	Window  schemas.Window `json:"window"`
	Scope   string         `json:"scope,omitempty"`
	Events  uint64         `json:"events"`
	Effects []string       `json:"effects"`
	Cut     bool           `json:"effects_cut"`
}

// explain puts the layers of a valid record beside each other, call by call.
func (v *verifier) explain() *Explanation {
	x := &Explanation{AllowedClaim: allowedClaim(v.health.KernelLayer, len(v.report.Bindings)), ForbiddenClaim: forbiddenClaim, Calls: []Call{}, Ambiguities: []string{}}
	codes := map[string][]string{}
	for _, entry := range v.report.Ambiguities {
		a, err := schemas.ParseCode(entry)
		if err == nil && a.Arg == schemas.ArgID && (v.policy.byID[a.Value] != nil || v.sdk.calls[a.Value] != nil) {
			codes[a.Value] = append(codes[a.Value], entry)
		} else {
			x.Ambiguities = append(x.Ambiguities, entry)
		}
	}
	for i := range v.policy.list {
		d, b := &v.policy.list[i], &v.report.Bindings[i]
		c := Call{ToolCallID: d.id, SDK: v.sdkSaid(d.id), Ambiguities: about(codes, d.id),
			Policy: &CallPolicy{d.tool, d.verdict, d.reason, d.rule, d.outcome, d.key, d.attempt}, window: b.Window}
		if v.health.KernelLayer != schemas.LayerAbsent {
			c.Kernel = &CallKernel{b.Window, b.KernelScope, b.KernelEventCount, append([]string{}, b.KernelEffects...), b.EffectsCut}
		}
		x.Calls = append(x.Calls, c)
	}
	for _, id := range sortedKeys(v.sdk.calls) {
		if v.policy.byID[id] == nil {
			x.Calls = append(x.Calls, Call{ToolCallID: id, SDK: v.sdkSaid(id), Ambiguities: about(codes, id)})
		}
	}
	return x
}

func about(codes map[string][]string, id string) []string {
	return append([]string{}, slices.Clone(codes[id])...)
}

func (v *verifier) sdkSaid(id string) *CallSDK {
	s := v.sdk.calls[id]
	if s == nil {
		return nil
	}
	return &CallSDK{s.tool, s.started, s.completed}
}
