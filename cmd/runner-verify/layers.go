package main

import (
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// This file keeps what the rules need to know of the lines once they are gone.

// Words that are kept once, and the bytes of one.
const maxWords, maxWord = 1 << 12, 128

// runEvents is what events.ndjson says.
type runEvents struct {
	list     []archive.Line
	started  *schemas.RunStarted
	finished *schemas.RunFinished
}

func (e *runEvents) add(l archive.Line) {
	e.list = append(e.list, l)
	switch event := l.Event.(type) {
	case *schemas.RunStarted:
		e.started = event
	case *schemas.RunFinished:
		e.finished = event
	}
}

// writtenByRunner reports whether this runner wrote the archive, so that its
// profile applies. It never writes elapsed time, which every archive of another
// implementation has.
func (v *verifier) writtenByRunner() bool {
	s, f := v.events.started, v.events.finished
	return s != nil && s.ElapsedMS == nil && f != nil && f.ElapsedMS == nil
}

// kernelLayer is what the kernel lines add up to.
type kernelLayer struct {
	net     schemas.Coverage
	effects effectSet
	refused [len(schemas.Enforcements)]refusals
	near    neighbours

	endpoints endpointSet
	lines     uint64 // that were read so far
}

// refusals are what the lines say about rules of one kind.
type refusals struct {
	lines uint64
	rule  uint32            // the highest number of a rule that refused something
	rules ruleNumbers       // all of them
	first []verdict.Refused // the first things that were refused, for --explain
	room  verdict.ListRoom
}

// ruleNumbers is a set of numbers of rules. Numbers beyond the highest that there can be are left out.
type ruleNumbers [(schemas.MaxRuleNumber + 1) / 64]uint64

func (r *ruleNumbers) add(n uint32) {
	if n <= schemas.MaxRuleNumber {
		r[n/64] |= 1 << (n % 64)
	}
}

func (r *ruleNumbers) has(n uint32) bool { return r[n/64]&(1<<(n%64)) != 0 }

// add takes in a line.
func (r *refusals) add(e *schemas.KernelEvent) {
	r.lines++
	r.rule = max(r.rule, e.RuleID)
	r.rules.add(e.RuleID)
	if len(e.Value) > verdict.MaxListBytes {
		return // there is no list that it could be in
	}
	x := verdict.Refused{Value: string(e.Value), Lines: 1}
	if rule := e.RuleID; e.Has&schemas.KernelHasRuleID != 0 {
		x.Rule = &rule
	}
	for i := range r.first {
		if r.first[i].Same(&x) {
			r.first[i].Lines++
			return
		}
	}
	if r.room.Take(len(e.Value), verdict.MaxRefused) {
		r.first = append(r.first, x)
	}
}

func (v *verifier) addKernel(e *schemas.KernelEvent) error {
	k := &v.kernel
	k.effects.see(e)
	if err := v.process.kernel.see(k.lines, e); err != nil {
		return err
	}
	k.lines++
	if schemas.Refused(e.EventType) {
		k.addRefusal(e)
	}
	k.net.Add(e.EventType, e.Value)
	return v.surface.expect(schemas.SetOf(e.EventType), e.Value)
}

func (k *kernelLayer) addRefusal(e *schemas.KernelEvent) {
	for i := range schemas.Enforcements {
		if schemas.Enforcements[i].Event == e.EventType {
			k.refused[i].add(e)
		}
	}
}

// lineCount is the number of lines of a member.
func (v *verifier) lineCount(member string) uint64 { return v.members[member].Lines }

func (v *verifier) kernelLines() uint64 { return v.lineCount(bundle.KernelName) }
func (v *verifier) policyLines() uint64 { return v.lineCount(bundle.PolicyName) }
func (v *verifier) sdkLines() uint64    { return v.lineCount(bundle.SDKName) }

// decision is what is kept of one line of the policy layer.
type decision struct {
	id, tool, verdict          string
	would                      string // why the policy denies a call that was only audited
	outcome, reason, rule, key string // key: where the id was found
	attempt                    uint64 // 1 for the first
	timed                      bool   // runner-policy wrote it, so the call had a start and a session
	targets                    []string
	cut                        bool   // it named more
	unkept                     bool   // there was no room for all targets
	arguments                  string // digest, of a call that was found in the SDK layer by it
}

// ended reports whether the log says when the call was over.
func (d *decision) ended() bool { return d.timed && d.outcome != "" }

func (d *decision) denied() bool { return d.verdict == schemas.DecisionDeny }

// policyLayer is what the policy lines add up to.
type policyLayer struct {
	list  []decision
	byID  map[string][]int // places in list
	tools map[[2]string]bool
	room  schemas.CallRoom
	used  int    // of the room for targets
	last  string // id of the last decision with a session
	other bool   // a decision without a session was there

	policies  map[string]bool // digests, of decisions with a session
	digest    string          // of the policy, in the last line that has one
	digests   bool            // there are others
	processes bool            // there are decisions of runner-proc
	targets   bool            // some decision has targets, or more than it names
}

// addPolicy keeps a decision, and reports whether it did.
func (v *verifier) addPolicy(l *archive.Line, e *schemas.PolicyEvent) (bool, error) {
	p := &v.policy
	if !e.Room(&p.room) {
		v.tooManyCalls(l)
		return false, nil
	}
	d := decision{id: e.ToolCallID, tool: v.word(e.Tool), verdict: v.word(e.Decision), outcome: v.word(e.Outcome), reason: v.word(e.ReasonCode), would: v.word(e.WouldDeny), rule: v.word(e.RuleID),
		key: v.word(e.ToolCallIDSource), attempt: max(1, e.Attempt), timed: e.ToolCallIDSource != "", cut: e.TargetsCut, arguments: e.ArgumentsDigest}
	d.targets = p.keep(e.Targets)
	d.unkept = len(d.targets) < len(e.Targets)
	if e.PolicyDigest != "" {
		if e.Source == schemas.LogSourceProc {
			p.processes = true
		} else {
			p.digests = p.digests || p.digest != "" && p.digest != e.PolicyDigest
			p.digest = e.PolicyDigest
		}
		p.policies[e.PolicyDigest] = true
	}
	p.targets = p.targets || len(e.Targets) > 0 || e.TargetsCut
	p.byID[d.id] = append(p.byID[d.id], len(p.list))
	p.tools[[2]string{d.id, d.tool}] = true
	p.list = append(p.list, d)
	if err := v.surface.expect(schemas.SetMCPTools, []byte(e.Tool)); err != nil {
		return false, err
	}
	return true, v.surface.expect(schemas.SetPolicyDecisions, []byte(e.SurfaceValue()))
}

// Room for the targets of all decisions: their bytes, and what each costs on top of them.
const maxTargetRoom, targetCost = 8 << 20, 32

// keep is as many of the targets as there is room for.
func (p *policyLayer) keep(targets []string) []string {
	for i, t := range targets {
		if p.used += len(t) + targetCost; p.used > maxTargetRoom {
			return targets[:i:i]
		}
	}
	return targets
}

// word is a text that many lines have, kept once.
func (v *verifier) word(s string) string {
	if old, ok := v.words[s]; ok {
		return old
	}
	if len(v.words) < maxWords && len(s) <= maxWord {
		v.words[s] = s
	}
	return s
}

// tooManyCalls is about a line whose call is not kept.
func (v *verifier) tooManyCalls(l *archive.Line) {
	v.add(archive.RuleLimit, l.Member, l.Number, "more than %d tool calls, or than %d bytes of their ids and tools", schemas.MaxToolCalls, schemas.MaxToolCallBytes)
}

// prefix returns what a name has before that of the tool of some decision in these places; nothing if there is no
// decision.
func (p *policyLayer) prefix(places []int, tool string) (prefix string, ok bool) {
	if places == nil || p.tools[[2]string{p.list[places[0]].id, tool}] {
		return "", true
	}
	for _, i := range places {
		if x, is := schemas.ToolPrefix(tool, p.list[i].tool); is && (!ok || x == "") {
			prefix, ok = x, true
		}
	}
	return prefix, ok
}

// attempts reports whether the decisions of one id can be attempts of one call:
// the later ones have higher numbers. One decision always can.
func (p *policyLayer) attempts(places []int) bool {
	for i, at := range places {
		d := &p.list[at]
		if len(places) > 1 && (!d.timed || d.tool != p.list[places[0]].tool || i > 0 && d.attempt <= p.list[places[i-1]].attempt) {
			return false
		}
	}
	return true
}

// sdkCall is what the SDK reported of one tool call.
type sdkCall struct {
	tool               string // as in the first event
	differs            bool   // some event names a tool that no decision of the id names
	prefix             string // of an event's name of the tool, before that of a decision; "" for none
	prefixes           bool   // there is more than one, the empty one included
	plain              bool   // some event names the tool as a decision does
	arguments          string // digest, of the first event that has one
	started, completed uint32
}

// sdkLayer is what the SDK lines add up to.
type sdkLayer struct {
	calls map[string]*sdkCall
	room  schemas.CallRoom
	ended string // run_finished or run_failed, when one of them was reported
}

func (v *verifier) addSDK(l *archive.Line, e *schemas.SDKEvent) {
	s := &v.sdk
	if e.EventType == schemas.SDKRunFinished || e.EventType == schemas.SDKRunFailed {
		s.ended = e.EventType
	}
	if e.ToolCallID == nil || *e.ToolCallID == "" {
		return
	}
	if v.writtenByRunner() && !strings.HasPrefix(e.EventType, "tool_call_") {
		return
	}
	id, tool := *e.ToolCallID, ""
	if e.Tool != nil {
		tool = *e.Tool
	}
	c := s.calls[id]
	if c == nil {
		if !s.room.Take(id, tool) {
			v.tooManyCalls(l)
			return
		}
		c = &sdkCall{}
		s.calls[id] = c
	}
	switch e.EventType {
	case schemas.SDKCallStarted:
		c.started++
	case schemas.SDKCallCompleted:
		c.completed++
	}
	if e.Tool != nil {
		if c.tool == "" {
			c.tool = v.word(tool)
		}
		c.named(v.policy.prefix(v.placesOf(id), tool))
	}
	if c.arguments == "" {
		c.arguments = e.ArgumentsDigest
	}
}

// named takes in how an event names the tool.
func (c *sdkCall) named(prefix string, ok bool) {
	switch {
	case !ok:
		c.differs = true
	case prefix == "":
		c.plain = true
	case c.prefix == "":
		c.prefix = strings.Clone(prefix)
	default:
		c.prefixes = c.prefixes || c.prefix != prefix
	}
	c.prefixes = c.prefixes || c.plain && c.prefix != ""
}
