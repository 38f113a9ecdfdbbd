package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// Bounds of what is remembered about effects on the targets of denied calls.
const (
	maxDeniedHits  = 64
	maxCovering    = 16
	deniedHitBytes = 1 << 20 // in all
)

// deniedHit is an effect on a target, at its latest. Whether it was after a call's
// denial, a look at the time will tell, for every call that names the target.
type deniedHit struct {
	text  string
	last  uint64
	maybe []*session // it was one of these sessions' calls if its server is nowhere else
}

// hit notes an effect on what a denied call named, unless an allowed call that
// named it as closely was running in the tree that the line is of: one on a directory
// above does not cover what was denied below. Of an address nobody can
// tell whether it is a host's: an allowed call covers what may be its host's from
// being what may be a denied call's host's, and from nothing more.
func (a *attribution) hit(p *process, e *schemas.KernelEvent, ktime uint64) {
	found := a.index.match(a.subject.name) // from the top down
	for i := range found {
		a.hitOn(p, e, ktime, found[i:], found[i:i+1])
	}
	if a.subject.named {
		n := len(found)
		found = append(found, a.subject.host)
		a.hitOn(p, e, ktime, found, found[n:])
	}
}

// hitOn notes an effect on some targets, unless calls on others cover it.
func (a *attribution) hitOn(p *process, e *schemas.KernelEvent, ktime uint64, covering, on []uint32) {
	late := false
	for _, n := range on {
		w := a.index.targets[n].deniedTarget
		late = late || w != nil && w.denied < ktime
	}
	if !late {
		return
	}
	maybe, covered := a.covered(p, covering, ktime)
	if covered {
		return
	}
	for _, n := range on {
		if w := a.index.targets[n].deniedTarget; w != nil && w.denied < ktime {
			a.note(w, deniedHit{last: ktime, maybe: maybe}, a.effect(e))
		}
	}
}

// covered looks for an allowed call. Lines of no known tree may belong to a session
// whose server has not come yet, and may never come.
func (a *attribution) covered(p *process, found []uint32, ktime uint64) (maybe []*session, yes bool) {
	for _, n := range found {
		w := a.index.targets[n].deniedTarget
		if w == nil || len(w.calls) == 0 {
			continue
		}
		if p.of != nil {
			for of := p.of; of != nil; of = of.around {
				if w.by(of.session, ktime) {
					return nil, true
				}
			}
			continue
		}
		for i := range w.calls {
			s := w.calls[i].session
			if i > 0 && w.calls[i-1].session == s || s.known || len(maybe) == maxCovering {
				continue
			}
			if w.by(s, ktime) && !slices.Contains(maybe, s) {
				maybe = append(maybe, s)
			}
		}
	}
	slices.SortFunc(maybe, func(a, b *session) int { return a.number - b.number })
	return maybe, false
}

func (a *attribution) note(w *deniedTarget, s deniedHit, text []byte) {
	for i := range w.seen {
		if have := &w.seen[i]; have.text == string(text) && slices.Equal(have.maybe, s.maybe) {
			have.last = max(have.last, s.last)
			return
		}
	}
	if len(w.seen) == maxDeniedHits || a.hitBytes+len(text) > deniedHitBytes {
		// No room for its text. That it may be covered is not remembered either.
		w.over = max(w.over, s.last)
		return
	}
	a.hitBytes += len(text)
	s.text = string(text)
	w.seen = append(w.seen, s)
}

// deny gives denied calls the effects that came later all the same.
func (a *attribution) deny(c codes) {
	for _, d := range a.policy.decisions {
		if !d.timed || !d.denied() {
			continue
		}
		texts, over := a.seenOn(d, d.targets)
		slices.Sort(texts)
		for _, text := range texts {
			d.effects.add([]byte(text))
		}
		d.effects.cut = d.effects.cut || over
		if len(d.effects.list) > 0 || d.effects.cut {
			c.of(schemas.AmbiguityDeniedEffects, d.event.ToolCallID)
		}
		if texts, over := a.seenOn(d, d.hosts); len(texts) > 0 || over {
			c.of(schemas.AmbiguityTargetsUnknown, d.event.ToolCallID)
		}
	}
}

// seenOn are the effects on some targets that came after a call's denial, and
// whether there were others.
func (a *attribution) seenOn(d *decision, targets []uint32) (texts []string, over bool) {
	for _, n := range targets {
		w := a.index.targets[n].deniedTarget
		for i := range w.seen {
			if s := &w.seen[i]; s.last > d.end && !slices.ContainsFunc(s.maybe, func(s *session) bool { return !s.known }) {
				texts = append(texts, s.text)
			}
		}
		over = over || w.over > d.end
	}
	return texts, over
}

// unseen adds the denied calls on names that the kernel layer leaves out: a plain
// read of one is no line, so nobody can tell whether it came.
func (a *attribution) unseen(c codes) {
	for _, d := range a.policy.decisions {
		if d.timed && d.denied() && slices.ContainsFunc(d.targets, func(n uint32) bool {
			return a.noise.Find([]byte(a.index.targets[n].text), 0) >= 0
		}) {
			c.of(schemas.AmbiguityTargetsUnknown, d.event.ToolCallID)
		}
	}
}
