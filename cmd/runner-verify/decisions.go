package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// decision is what is kept of one line of the policy layer.
type decision struct {
	id, tool, verdict          string
	outcome, reason, rule, key string // key: where the id was found
	attempt                    uint64 // 1 for the first
	timed                      bool   // runner-policy wrote it, so the call had a start and a session
}

// ended reports whether the log says when the call was over.
func (d *decision) ended() bool { return d.timed && d.outcome != "" }

func (d *decision) denied() bool { return d.verdict == schemas.DecisionDeny }

// policyLayer is what the policy lines add up to.
type policyLayer struct {
	lines uint64
	list  []decision
	byID  map[string][]int // places in list
	tools map[[2]string]bool
	last  string // id of the last decision with a start
	other bool   // a decision without a start was there

	digest  string // of the policy, in the first line that has one
	digests bool   // there are others
}

func (v *verifier) policyLine(line []byte, n int) error {
	const member = bundle.PolicyName
	p := &v.policy
	p.lines++
	if !v.shallow(member, n, line) {
		return nil
	}
	e, err := schemas.ParsePolicyEvent(line)
	if err != nil {
		v.add(ruleLineSchema, member, n, "%v", err)
		return nil
	}
	v.sameRun(member, n, e.RunID)
	v.canonicalLine(member, n, line, e)
	if e.Seq != p.lines-1 {
		v.add(ruleSeq, member, n, "seq is %d, expected %d", e.Seq, p.lines-1)
	}
	if len(p.list) >= maxToolCalls {
		v.add(ruleLimit, member, n, "more than %d tool calls", maxToolCalls)
		return nil
	}
	d := decision{id: e.ToolCallID, tool: e.Tool, verdict: e.Decision, outcome: e.Outcome, reason: e.ReasonCode, rule: e.RuleID,
		key: e.ToolCallIDSource, attempt: max(1, e.Attempt), timed: e.ToolCallIDSource != ""}
	if v.events.own() {
		v.checkDecision(e, &d, n)
	} else if beyondContract(e) {
		v.add(ruleLineSchema, member, n, "keys that only lines of this runner have")
	}
	if e.PolicyDigest != "" {
		p.digests = p.digests || p.digest != "" && p.digest != e.PolicyDigest
		p.digest = e.PolicyDigest
	}
	p.byID[d.id] = append(p.byID[d.id], len(p.list))
	p.tools[[2]string{d.id, d.tool}] = true
	p.list = append(p.list, d)
	v.checkBinding(len(p.list) - 1)
	if err := v.values.Add(schemas.SetMCPTools, []byte(e.Tool)); err != nil {
		return err
	}
	return v.values.Add(schemas.SetPolicyDecisions, []byte(e.Decision+":"+e.Tool))
}

// beyondContract reports whether a line has keys that the v0 contract does not know.
func beyondContract(e *schemas.PolicyEvent) bool {
	return e.ToolCallIDSource != "" || e.Outcome != "" || e.ReasonCode != "" || e.RuleID != "" || e.PolicyDigest != "" || e.Attempt > 0
}

// checkDecision checks what in a line of this runner follows from something else
// in it, and its place.
func (v *verifier) checkDecision(e *schemas.PolicyEvent, d *decision, n int) {
	const member = bundle.PolicyName
	if what := contradicts(e); what != "" {
		v.add(rulePolicyDecision, member, n, "%s", what)
	}
	for _, s := range []string{e.Source, e.ToolCallID, e.Tool, e.Decision, e.ToolCallIDSource, e.Outcome, e.ReasonCode, e.RuleID} {
		if !isText([]byte(s)) {
			v.add(rulePolicyText, member, n, "%.100q is not the escape of any byte string", s)
		}
	}
	if !d.timed {
		v.policy.other = true
		return
	}
	if v.policy.other {
		v.add(rulePolicyOrder, member, n, "a decision with a session stands behind one without")
	}
	if d.id < v.policy.last {
		v.add(rulePolicyOrder, member, n, "tool_call_id %.100q stands behind %.100q, expected them in byte order", d.id, v.policy.last)
	}
	v.policy.last = d.id
}

// contradicts says what in a decision cannot be, "" when everything can. Of the
// decisions of other proxies nothing beyond the contract is known.
func contradicts(e *schemas.PolicyEvent) string {
	if (e.ToolCallIDSource != "") != (e.PolicyDigest != "") {
		return "tool_call_id_source and policy_digest stand together or not at all"
	}
	if e.ToolCallIDSource == "" {
		if e.Attempt > 0 {
			return "attempt in a decision of another proxy"
		}
		return ""
	}
	if e.Decision != schemas.DecisionAllow && e.Decision != schemas.DecisionDeny {
		return "decision is " + e.Decision + ", runner-policy knows allow and deny"
	}
	reason, known := schemas.LookupReason(e.ReasonCode)
	switch {
	case e.Source != schemas.LogSource:
		return "source is " + e.Source + ", but tool_call_id_source and policy_digest are runner-policy's"
	case !known || reason.Decision() != e.Decision:
		return "reason_code " + e.ReasonCode + " does not go with decision " + e.Decision
	case !slices.Contains(reason.Outcomes(), e.Outcome) && (e.Outcome != "" || e.Decision == schemas.DecisionDeny):
		return "outcome " + e.Outcome + " does not go with decision " + e.Decision
	case reason.Rule == schemas.RuleAlways && e.RuleID == "":
		return "reason_code " + e.ReasonCode + " without a rule_id"
	case reason.Rule == schemas.RuleNever && e.RuleID != "":
		return "reason_code " + e.ReasonCode + " with a rule_id"
	}
	return ""
}

// attempts reports whether the decisions of one id can be attempts of one call:
// the later ones are numbered on. One decision always can.
func (p *policyLayer) attempts(places []int) bool {
	for i, at := range places {
		d := &p.list[at]
		if len(places) > 1 && (!d.timed || d.tool != p.list[places[0]].tool || i > 0 && d.attempt <= p.list[places[i-1]].attempt) {
			return false
		}
	}
	return true
}
