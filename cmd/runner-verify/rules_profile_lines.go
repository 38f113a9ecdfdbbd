package main

import (
	"bytes"
	"net/netip"
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// The rules for single lines that this runner wrote.

// lineForm checks that a line is the one way to write its event.
func (v *verifier) lineForm(l *archive.Line) {
	switch e := l.Event.(type) {
	case *schemas.KernelEvent:
		if l.Canonical {
			return
		}
		v.again = e.AppendJSON(v.again[:0], l.RunID)
	case interface{ AppendJSON([]byte) []byte }:
		v.again = e.AppendJSON(v.again[:0])
	default:
		v.again, _ = schemas.Marshal(l.Event) // what cannot be written differs too
	}
	if !bytes.Equal(v.again, l.Bytes) {
		v.add(ruleLineForm, l.Member, l.Number, "not in canonical form from byte %d on: order of keys, escapes or blanks differ", archive.FirstDifference(v.again, l.Bytes))
	}
}

// timeForm is lineForm of the layer times, which no other implementation writes. Any other form takes
// many times as long to read, and there is no bound of the lines.
func (v *verifier) timeForm(l *archive.Line, _ *schemas.TimeEvent) { v.lineForm(l) }

// environment checks the names of the variables that the runner set: those of a
// log are there when it was collected.
func (v *verifier) environment(l *archive.Line, e *schemas.RunStarted) {
	fault := func(format string, a ...any) { v.add(ruleEventsEnv, l.Member, l.Number, format, a...) }
	has := map[string]bool{}
	for i, key := range e.EnvKeys {
		if !slices.Contains(schemas.EnvKeys(), key) {
			fault("env_keys has %.100q, which no runner sets", key)
		}
		if i > 0 && e.EnvKeys[i-1] >= key {
			fault("env_keys has %.100q twice or not in order", key)
		}
		has[key] = true
	}
	if !schemas.KnownShim(e.AgentShim) {
		fault("agent_shim is %.100q, expected %s or %s", e.AgentShim, schemas.ShimNone, schemas.ShimOpenAIAgents)
		return
	}
	someLog := false
	for _, l := range schemas.LogLayers() {
		someLog = someLog || has[l.Log.Env]
		if l.Log.SchemaEnv != "" && has[l.Log.Env] != has[l.Log.SchemaEnv] {
			fault("env_keys has one of %s and %s without the other", l.Log.Env, l.Log.SchemaEnv)
			return
		}
	}
	switch {
	case has[schemas.EnvSDKLog] != schemas.CollectsSDK(e.AgentShim):
		fault("agent_shim is %s, which does not go with env_keys", e.AgentShim)
	case has[schemas.EnvRunID] != someLog:
		fault("env_keys has %s exactly when it has a log", schemas.EnvRunID)
	}
}

// profileKernel checks that a kernel line has what this runner always writes.
func (v *verifier) profileKernel(l *archive.Line, e *schemas.KernelEvent) {
	v.operations(l, e)
	if e.Has&schemas.KernelHasReturn != 0 && e.Status == "" && !e.Pending() {
		v.faultKernel(l, "status is missing, return_value says %s", statusOf(e))
	}
	switch e.EventType {
	case schemas.EventOpenat:
		v.openComplete(l, e)
	case schemas.EventConnectBlocked, schemas.EventFileBlocked:
		v.blockedComplete(l, e)
	}
}

func (v *verifier) openComplete(l *archive.Line, e *schemas.KernelEvent) {
	switch {
	case e.Has&schemas.KernelHasFlags == 0 || e.Has&schemas.KernelHasMode == 0 || e.AccessMode == "":
		v.faultKernel(l, "an openat line without flags, mode and access_mode")
	case e.Mode != 0 && e.Flags&schemas.OpenCreates == 0:
		v.faultKernel(l, "mode of an open that can create nothing")
	}
}

// blockedComplete checks a line about a refused operation.
func (v *verifier) blockedComplete(l *archive.Line, e *schemas.KernelEvent) {
	_, err := netip.ParseAddrPort(string(e.Value))
	ip := err == nil && e.EventType == schemas.EventConnectBlocked
	switch kind, port := schemas.KindOf(e.EventType), e.Has&schemas.KernelHasPort != 0; {
	case e.Has&schemas.KernelHasCgroupID == 0:
		v.faultKernel(l, "a %s line without cgroup_id", kind)
	case e.Has&schemas.KernelHasRuleID == 0:
		v.faultKernel(l, "a %s line without rule_id", kind)
	case e.Status == schemas.StatusSuccess:
		v.faultKernel(l, "a %s line that says success", kind)
	case ip != port || ip != (e.Destination != nil):
		v.faultKernel(l, "network_destination and network_port belong to an IP endpoint, and only together")
	case ip && endpoint(e.Destination, e.Port) == "":
		v.faultKernel(l, "network_destination is not an address")
	}
}

func (v *verifier) kernelText(l *archive.Line, e *schemas.KernelEvent) {
	if !schemas.IsText(e.Value) {
		v.add(ruleKernelText, l.Member, l.Number, "value %.100q is not the escape of any byte string", e.Value)
	}
}

func (v *verifier) policyText(l *archive.Line, e *schemas.PolicyEvent) {
	for _, s := range []string{e.Source, e.ToolCallID, e.Tool, e.Decision, e.ToolCallIDSource, e.Outcome, e.ReasonCode, e.RuleID} {
		v.policyName(l, s)
	}
	for _, s := range e.Targets {
		v.policyName(l, s)
	}
}

func (v *verifier) policyName(l *archive.Line, s string) {
	if !schemas.IsText([]byte(s)) {
		v.add(rulePolicyText, l.Member, l.Number, "%.100q is not the escape of any byte string", s)
	}
}

func (v *verifier) sdkText(l *archive.Line, e *schemas.SDKEvent) {
	for _, s := range []*string{&e.Source, e.SDKName, e.SDKVersion, e.ToolCallID, e.Tool} {
		if s != nil && !schemas.IsText([]byte(*s)) {
			v.add(ruleSDKText, l.Member, l.Number, "%.100q is not the escape of any byte string", *s)
		}
	}
}

// policyDecision checks what in a decision follows from something else in it.
func (v *verifier) policyDecision(l *archive.Line, e *schemas.PolicyEvent) {
	if what := contradicts(e); what != "" {
		v.add(rulePolicyDecision, l.Member, l.Number, "%s", what)
	}
}

// contradicts says what in a decision cannot be, "" when everything can. Of the
// decisions of other proxies nothing beyond the contract is known.
func contradicts(e *schemas.PolicyEvent) string {
	if (e.ToolCallIDSource != "") != (e.PolicyDigest != "") {
		return "tool_call_id_source and policy_digest are there together or not at all"
	}
	if e.ToolCallIDSource == "" {
		switch {
		case e.Attempt > 0:
			return "attempt in a decision of another proxy"
		case len(e.Targets) > 0 || e.TargetsCut:
			return "targets in a decision of another proxy"
		case e.WouldDeny != "":
			return "would_deny in a decision of another proxy"
		case e.ArgumentsDigest != "":
			return "arguments_digest in a decision of another proxy"
		}
		return ""
	}
	if e.Decision != schemas.DecisionAllow && e.Decision != schemas.DecisionDeny {
		return "decision is " + e.Decision + ", expected allow or deny"
	}
	reason, known := schemas.LookupReason(e.ReasonCode)
	switch {
	case !schemas.IsLogSource(e.Source):
		return "source is " + e.Source + ", but tool_call_id_source and policy_digest are those of runner-policy and runner-proc"
	case !known || reason.Decision() != e.Decision:
		return "reason_code " + e.ReasonCode + " does not go with decision " + e.Decision
	case !slices.Contains(reason.Outcomes(), e.Outcome) && (e.Outcome != "" || e.Decision == schemas.DecisionDeny):
		return "outcome " + e.Outcome + " does not go with decision " + e.Decision
	case reason.Rule == schemas.RuleAlways && e.RuleID == "":
		return "reason_code " + e.ReasonCode + " without a rule_id"
	case reason.Rule == schemas.RuleNever && e.RuleID != "":
		return "reason_code " + e.ReasonCode + " with a rule_id"
	}
	if err := schemas.CheckWouldDeny(e.ReasonCode, e.WouldDeny); err != nil {
		return err.Error()
	}
	if err := schemas.CheckTargets(e.Targets); err != nil {
		return err.Error()
	}
	return ""
}

// policyOrder checks the place of a decision among the others.
func (v *verifier) policyOrder(l *archive.Line, e *schemas.PolicyEvent) {
	p := &v.policy
	if e.ToolCallIDSource == "" {
		p.other = true
		return
	}
	if p.other {
		v.add(rulePolicyOrder, l.Member, l.Number, "a decision with a session follows one without")
	}
	if e.ToolCallID < p.last {
		v.add(rulePolicyOrder, l.Member, l.Number, "tool_call_id %.100q follows %.100q, expected them in byte order", e.ToolCallID, p.last)
	}
	p.last = e.ToolCallID
}
