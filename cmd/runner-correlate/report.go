package main

import (
	"errors"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// addDeclared adds the tools and decisions of the policy layer to the surface.
func (j *joiner) addDeclared() error {
	for _, d := range j.policy.decisions {
		e := &d.event
		if err := errors.Join(j.surface.Add(schemas.SetMCPTools, []byte(e.Tool)), j.surface.Add(schemas.SetPolicyDecisions, []byte(e.SurfaceValue()))); err != nil {
			return failWrite(err)
		}
	}
	return nil
}

// hasTimes reports whether the kernel lines have times, which separate calls.
func (j *joiner) hasTimes() bool { return j.times == timed }

// report makes the report from all layers, without its bindings. It runs after the
// kernel stream.
func (j *joiner) report(kernelLayer, cgroup string) *schemas.Report {
	r := &schemas.Report{Schema: schemas.SchemaReport, RunID: j.in.Header().RunID}
	c := codes{}
	for _, l := range j.logs {
		empty := !l.present() && !l.Log.MayBeEmpty()
		if empty && l.Name == schemas.LayerPolicy && l.end().facts.unused && (j.sdk == nil || len(j.sdk.calls) == 0) {
			empty = false
			c.add(schemas.NoteLogUnused)
		}
		c.addLog(l.Layer, l.end(), empty)
	}
	if p := j.policy; p != nil {
		for _, s := range p.sessions {
			s.windows.addCrowded()
		}
		p.resolveOverlaps()
		p.addCodes(c)
		j.otherPolicies(c)
		j.attribution.unassigned.sum()
		j.attribution.addDenied(c)
		j.kernelCodes(c, kernelLayer, cgroup)
		for _, d := range p.decisions {
			j.callCodes(c, d, kernelLayer)
		}
		j.attribution.budget.trim()
	}
	if s := j.sdk; s != nil {
		s.compare(c, j.policy)
	}
	j.records.codes(c, kernelLayer == schemas.LayerComplete && j.stages[1].Filtered[schemas.FilterDrop] == 0)
	for _, code := range c.sorted() {
		if schemas.IsNote(code) {
			r.Notes = append(r.Notes, code)
		} else {
			r.Ambiguities = append(r.Ambiguities, code)
		}
	}
	r.Status = schemas.WorstOf(r.Ambiguities)
	return r
}

// bind makes the binding of a decision. It runs after report, which decides whether
// the call has a window of its own.
func (j *joiner) bind(d *decision) schemas.Binding {
	b := schemas.Binding{ToolCallID: d.event.ToolCallID, PolicyDecision: &d.event.Decision, KernelEventCount: j.lines, Window: schemas.RunWindow}
	if d.sdkID != "" {
		b.Join, b.SDKCallID = schemas.JoinDigest, schemas.Text(d.sdkID)
	}
	if !d.timed || !j.hasTimes() {
		return b
	}
	b.KernelScope = schemas.ScopeRun
	if d.session.known {
		b.KernelScope = schemas.ScopeToolServer
	}
	b.KernelEventCount, _ = j.counted(d)
	if d.exclusiveWindow() {
		b.Window = schemas.CallWindow(d.event.ToolCallID)
	}
	if d.exclusiveWindow() || d.denied() {
		d.effects.take(&b)
	}
	return b
}

// counted returns the number of kernel lines in a call's window, and whether all their
// effects were examined.
func (j *joiner) counted(d *decision) (lines uint64, all bool) {
	switch {
	case d.session.known && d.exclusiveWindow():
		return d.lines, true
	case d.session.known:
		return d.session.lines, true
	case d.exclusiveWindow():
		return j.attribution.unassigned.window(d)
	}
	return j.attribution.unassigned.total(), true
}

// otherPolicies adds the sessions of proxies that had another policy file than the
// run. runner-exec reports the run's file with the log, and the capture reports it when
// it enforced its rules.
func (j *joiner) otherPolicies(c codes) {
	digests := []string{j.policy.facts.policy}
	for i := range schemas.Enforcements {
		digests = append(digests, j.capture().Fact(schemas.Enforcements[i].Policy))
	}
	for _, digest := range digests {
		for _, s := range j.policy.sessions {
			if digest != "" && !s.ofProcesses() && slices.ContainsFunc(s.policies, func(d string) bool { return d != digest }) {
				c.addFor(schemas.AmbiguitySessionOtherPolicy, s.name)
			}
		}
	}
}

// kernelCodes adds the codes about the kernel layer as a whole, and about sessions.
func (j *joiner) kernelCodes(c codes, kernelLayer, cgroup string) {
	p := j.policy
	hasTime, lacksTime := false, false
	for _, d := range p.decisions {
		hasTime, lacksTime = hasTime || d.timed, lacksTime || !d.timed
	}
	captured := j.capture().Attached()
	if n := len(p.decisions); n > 0 {
		if cgroup == schemas.CorrelationFailed {
			c.add(schemas.AmbiguityCgroupFailed)
		}
		if kernelLayer == schemas.LayerPartial {
			c.add(schemas.AmbiguityKernelLost)
		}
		if j.lines == 0 {
			c.add(schemas.AmbiguityNoKernelEvents)
		}
		if n > 1 && captured && lacksTime {
			c.add(schemas.AmbiguityManyDecisions)
		}
	}
	if hasTime && j.lines > 0 && !j.hasTimes() {
		c.add(schemas.AmbiguityTimesUnknown)
	}
	if !captured || !j.hasTimes() {
		return
	}
	for _, s := range p.sessions {
		switch {
		case s.known:
		case s.server == 0:
			c.addFor(schemas.NoteElsewhere, s.name)
		default:
			c.addFor(schemas.AmbiguityServerUnknown, s.name)
		}
		for i := range s.windows.list {
			if w := &s.windows.list[i]; w.idle {
				c.addFor(schemas.AmbiguityOutsideWindows, w.ending)
			}
		}
	}
	if len(p.sessions) > 0 {
		j.tree.addCodes(c)
	}
	j.attribution.addUnobservable(c)
	j.attribution.addPhases(c)
}

// callCodes adds the codes about what an allowed call did.
func (j *joiner) callCodes(c codes, d *decision, kernelLayer string) {
	if !d.timed || !d.allowed() || !j.hasTimes() {
		return
	}
	id := d.event.ToolCallID
	if d.exclusiveWindow() {
		lines, all := j.counted(d)
		d.effects.cut = d.effects.cut || !all && lines > 0
		if kernelLayer != schemas.LayerAbsent && lines == 0 {
			c.addFor(schemas.AmbiguityDecisionNoEvents, id)
		}
	}
	if !d.session.known || d.repeated || !d.exclusiveWindow() && !d.together() {
		return
	}
	switch {
	case d.hasEffects && len(d.targets) == 0 && !d.cut:
		c.addFor(schemas.NoteNamesNothing, id)
	case d.outside && d.cut, d.maybeHost && !d.outside:
		c.addFor(schemas.AmbiguityTargetsUnknown, id)
	case d.outside:
		c.addFor(schemas.AmbiguityEffectsOutside, id)
	}
}
