package main

import (
	"errors"

	"github.com/runner-evidence/runner/schemas"
)

// declared puts what the policy layer names into the surface.
func (j *joiner) declared() error {
	for _, d := range j.policy.decisions {
		e := &d.event
		if err := errors.Join(j.surface.Add(schemas.SetMCPTools, []byte(e.Tool)), j.surface.Add(schemas.SetPolicyDecisions, []byte(e.SurfaceValue()))); err != nil {
			return failWrite(err)
		}
	}
	return nil
}

// hasTimes reports whether calls could be told apart by time.
func (j *joiner) hasTimes() bool { return j.times == timed }

// report is what the three layers say together, but for the bindings. It is made
// after the kernel stream.
func (j *joiner) report(kernelLayer, cgroup string) *schemas.Report {
	r := &schemas.Report{Schema: schemas.SchemaReport, RunID: j.in.Header().RunID}
	c := codes{}
	for _, l := range j.logs {
		c.ofLog(l.Layer, l.end(), !l.present())
	}
	if p := j.policy; p != nil {
		p.settle()
		p.codesOf(c)
		j.otherPolicies(c)
		j.join.rest.sum()
		j.join.deny(c)
		j.kernelCodes(c, kernelLayer, cgroup)
		for _, d := range p.decisions {
			j.callCodes(c, d, kernelLayer)
		}
		j.join.budget.trim()
	}
	if s := j.sdk; s != nil {
		s.compare(c, j.policy)
	}
	r.Ambiguities = c.sorted()
	r.Status = schemas.WorstOf(r.Ambiguities)
	return r
}

// bind joins a decision to its window. It comes after everything that could take
// the window from it.
func (j *joiner) bind(d *decision) schemas.Binding {
	b := schemas.Binding{ToolCallID: d.event.ToolCallID, PolicyDecision: &d.event.Decision, KernelEventCount: j.lines, Window: schemas.RunWindow}
	if !d.timed || !j.hasTimes() {
		return b
	}
	b.KernelScope = schemas.ScopeRun
	if d.session.known {
		b.KernelScope = schemas.ScopeToolServer
	}
	b.KernelEventCount, _ = j.counted(d)
	if d.own() {
		b.Window = schemas.CallWindow(d.event.ToolCallID)
	}
	if d.own() || d.denied() {
		d.effects.take(&b)
	}
	return b
}

// counted is the number of kernel lines in a call's window, and whether all their
// effects were looked at.
func (j *joiner) counted(d *decision) (lines uint64, all bool) {
	switch {
	case d.session.known && d.own():
		return d.lines, true
	case d.session.known:
		return d.session.lines, true
	case d.own():
		return j.join.rest.window(d)
	}
	return j.join.rest.total(), true
}

// otherPolicies adds the sessions of proxies that had another policy file than the
// run: runner-exec names it with the log, and the capture when it enforced its rules.
func (j *joiner) otherPolicies(c codes) {
	for _, digest := range []string{j.policy.facts.policy, (&capture{j.stages[0]}).fact(schemas.FactNetworkPolicy)} {
		for _, s := range j.policy.sessions {
			if digest != "" && s.policy != digest {
				c.of(schemas.AmbiguitySessionOtherPolicy, s.name)
			}
		}
	}
}

// kernelCodes are those about the kernel layer as a whole, and about sessions.
func (j *joiner) kernelCodes(c codes, kernelLayer, cgroup string) {
	p := j.policy
	hasTime, lacksTime := false, false
	for _, d := range p.decisions {
		hasTime, lacksTime = hasTime || d.timed, lacksTime || !d.timed
	}
	captured := (&capture{j.stages[0]}).attached()
	if n := len(p.decisions); n > 0 {
		if cgroup == schemas.CorrelationFailed {
			c.say(schemas.AmbiguityCgroupFailed)
		}
		if kernelLayer == schemas.LayerPartial {
			c.say(schemas.AmbiguityKernelLost)
		}
		if j.lines == 0 {
			c.say(schemas.AmbiguityNoKernelEvents)
		}
		if n > 1 && captured && lacksTime {
			c.say(schemas.AmbiguityManyDecisions)
		}
	}
	if hasTime && j.lines > 0 && !j.hasTimes() {
		c.say(schemas.AmbiguityTimesUnknown)
	}
	if !captured || !j.hasTimes() {
		return
	}
	for _, s := range p.sessions {
		if !s.known {
			c.of(schemas.AmbiguityServerUnknown, s.name)
		}
		for i := range s.windows.list {
			if w := &s.windows.list[i]; w.idle {
				c.of(schemas.AmbiguityOutsideWindows, w.ending)
			}
		}
	}
	if len(p.sessions) > 0 {
		j.tree.execs.codes(c)
	}
	j.join.unseen(c)
}

// callCodes are those of one allowed call's own window.
func (j *joiner) callCodes(c codes, d *decision, kernelLayer string) {
	if !d.timed || !d.own() || !d.allowed() || !j.hasTimes() {
		return
	}
	id := d.event.ToolCallID
	lines, all := j.counted(d)
	d.effects.cut = d.effects.cut || !all && lines > 0
	if kernelLayer != schemas.LayerAbsent && lines == 0 {
		c.of(schemas.AmbiguityDecisionNoEvents, id)
	}
	if !d.session.known {
		return
	}
	switch {
	case d.any && len(d.targets) == 0, d.outside && d.cut, d.unsure && !d.outside:
		c.of(schemas.AmbiguityTargetsUnknown, id)
	case d.outside:
		c.of(schemas.AmbiguityEffectsOutside, id)
	}
}
