package main

import (
	"github.com/runner-evidence/runner/cmd/internal/noise"
	"github.com/runner-evidence/runner/schemas"
)

// attribution assigns every kernel line to the calls that it belongs to.
type attribution struct {
	policy     *policyLog
	index      *targetIndex
	tree       *tree
	noise      *noise.Table
	budget     budget
	unassigned segments // counts of the lines in no known tree
	denied     bool     // there are denied calls with targets
	ruled      bool     // rules that deny name something, or a denied request did
	calls      *callIndex

	inCall, setup, idle, agent, inRequest   uint64 // lines by class
	codes                                   codes  // found so far
	before, between, requested, deniedNamed firstValues
	hitBytes                                int // bytes of hits

	text    []byte
	subject subject
}

func newAttribution(runID string, p *policyLog) (*attribution, error) {
	table, err := noise.New(schemas.NoiseV0)
	if err != nil {
		return nil, err
	}
	index := p.index
	a := &attribution{policy: p, index: index, noise: table, budget: budget{order: p.decisions}, codes: codes{}}
	index.seal()
	a.unassigned = newSegments(p.decisions, func(d *decision) bool { return d.exclusiveInSession })
	a.denied, a.ruled = index.cover(p)
	a.calls = newCallIndex(p)
	a.tree = newTree(runID, p.sessions, a.matched)
	return a, nil
}

// matched drops the effects that a session's calls were given before its server was
// found: the session's tree begins only now.
func (a *attribution) matched(s *session) {
	for i := range s.windows.list {
		if d := s.windows.list[i].call; d != nil {
			d.effects = effectSet{}
		}
	}
}

// line takes in one kernel line of the current process.
func (a *attribution) line(e *schemas.KernelEvent, ktime uint64) {
	p := a.tree.current()
	effect := schemas.IsEffect(e)
	a.text = a.text[:0]
	a.index.next()
	if a.subject = (subject{}); effect || p.trees != nil {
		a.subject = a.index.subject(e)
	}
	if p.trees != nil {
		a.inTrees(p.trees, e, ktime, effect)
	} else {
		a.inNoTree(p, e, ktime, effect)
	}
	if effect && a.denied {
		a.hit(p, e, ktime)
	}
}

// effect is the text of a line, made when it is needed.
func (a *attribution) effect(e *schemas.KernelEvent) []byte {
	if len(a.text) == 0 {
		a.text = schemas.AppendEffect(a.text, e)
	}
	return a.text
}

// inTrees assigns a line to the sessions of the trees that its process is in.
func (a *attribution) inTrees(in *membership, e *schemas.KernelEvent, ktime uint64, effect bool) {
	called, requested, after := false, false, false
	for m := in; m != nil; m = m.outer {
		s := m.session
		s.lines++
		window, before := s.windows.at(ktime)
		if window != nil {
			called = true
			a.inWindow(window, e, ktime, effect)
		}
		requested = requested || len(s.busy) > 0 && s.running(ktime) != nil
		after = after || before != nil
	}
	switch {
	case called:
		a.inCall++
	case requested:
		a.inRequest++
		for m := in; m != nil && effect; m = m.outer {
			if list := m.session.running(ktime); list != nil {
				a.ofRequests(m.session, list, e, ktime)
			}
		}
	case after:
		a.idle++
		for m := in; m != nil; m = m.outer {
			if _, before := m.session.windows.at(ktime); before != nil && !a.ofCancelled(m.session, e, ktime) {
				before.idle = true
			}
		}
		a.note(&a.between, e, effect)
	default:
		a.setup++
		a.note(&a.before, e, effect)
	}
	if effect && a.ruled {
		a.onDenied(in, ktime)
	}
}

// note keeps an effect for the notes.
func (a *attribution) note(to *firstValues, e *schemas.KernelEvent, effect bool) {
	if effect {
		to.add(a.effect(e))
	}
}

// inWindow assigns a line to a call of a window.
func (a *attribution) inWindow(w *window, e *schemas.KernelEvent, ktime uint64, effect bool) {
	if w.call != nil {
		a.inCallOf(w.call, e, effect)
		return
	}
	calls := w.active(ktime) // none if its only call shares its id with another
	if d := a.only(calls, e); d != nil {
		a.inCallOf(d, e, effect)
		return
	}
	a.inNone(calls, e, effect)
}

// inCallOf assigns a line to a call.
func (a *attribution) inCallOf(d *decision, e *schemas.KernelEvent, effect bool) {
	d.lines++
	if effect && d.allowed() {
		own := a.depth(d, e)
		if prior, deeper := a.prior(d, own); prior != nil && own < 0 {
			if !prior.cancelled() {
				a.codes.addFor(schemas.AmbiguityEffectsLate, d.event.ToolCallID)
				a.codes.addFor(schemas.AmbiguityEffectsLate, prior.event.ToolCallID)
			}
			return
		} else if prior != nil && deeper && !prior.cancelled() {
			a.codes.addFor(schemas.NoteEffectsShared, d.event.ToolCallID)
			a.codes.addFor(schemas.NoteEffectsShared, prior.event.ToolCallID)
		}
		d.hasEffects = true
		if own < 0 {
			a.outside(d)
		}
	}
	a.list(d, e)
}

// outside records an effect of a call that matches none of its targets.
func (a *attribution) outside(d *decision) {
	if !d.outside {
		maybeHost := a.subject.address && len(d.hosts) > 0
		d.maybeHost, d.outside = d.maybeHost || maybeHost, !maybeHost
	}
}

// list adds the effect of a line to those of a call.
func (a *attribution) list(d *decision, e *schemas.KernelEvent) {
	if len(e.Value) > 0 && !d.effects.cut && d.allowed() {
		if n := d.effects.add(a.effect(e)); n > 0 {
			a.budget.grew(n)
		}
	}
}

// inNoTree assigns a line of a process that is in no known tree.
func (a *attribution) inNoTree(p *process, e *schemas.KernelEvent, ktime uint64, effect bool) {
	s := a.unassigned.at(ktime)
	s.lines++
	for _, d := range s.calls {
		if !d.session.known {
			a.list(d, e)
		}
	}
	if p.proxy {
		a.setup++
		return
	}
	a.agent++
	if effect && schemas.SetOf(e.EventType) == schemas.SetProcessExecs {
		a.tree.executed(e.Value, ktime)
	}
}
