package main

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// Bounds of what is kept about effects on the targets of denied calls.
const (
	maxDeniedHits  = 64
	maxCovering    = 16
	deniedHitBytes = 1 << 20 // in all
)

// deniedHit is an effect on a target, with the time when it was seen last. That time
// is compared with the denial of every call that names the target.
type deniedHit struct {
	text  string
	last  uint64
	maybe []*session // a call of one of these covers it, unless the session's server is found later
}

// hit records an effect on a target of a denied call, unless an allowed call covers
// it. A covering call runs in the tree of the line and names the path at least as
// closely: an allowed directory does not cover a denied path below it. Whether an
// address belongs to a named host is not known. So an allowed call on a host covers
// an address only against denied hosts, not against a denied address.
func (a *attribution) hit(p *process, e *schemas.KernelEvent, ktime uint64) {
	found := a.index.match(a.subject.name) // from the top down
	for i := range found {
		a.hitOn(p, e, ktime, found[i:], found[i:i+1])
	}
	if a.subject.hasHost {
		n := len(found)
		found = append(found, a.subject.host)
		a.hitOn(p, e, ktime, found, found[n:])
	}
}

// hitOn records an effect on the targets in on, unless a call on those in covering
// covers it.
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
			a.addHit(w, deniedHit{last: ktime, maybe: maybe}, a.effect(e))
		}
	}
}

// onDenied records an effect of a tool server on what a rule that denies names, or a request that was denied
// before. A call that excuses it is one as in covered.
func (a *attribution) onDenied(in *membership, ktime uint64) {
	found := a.index.match(a.subject.name)
	for i, n := range found {
		w := a.index.targets[n].deniedTarget
		if w == nil || !slices.ContainsFunc(w.rules, func(r ruled) bool { return r.since <= ktime && in.has(r.session) }) {
			continue
		}
		excused := false
		for _, closer := range found[i:] {
			for m := in; m != nil && !excused; m = m.outer {
				c := a.index.targets[closer].deniedTarget
				excused = c != nil && c.coveredBy(m.session, ktime)
			}
		}
		if !excused {
			a.deniedNamed.add([]byte(a.index.targets[n].text))
		}
	}
}

// covered looks for an allowed call that covers an effect. A line in no known tree may
// belong to a session whose server is not found yet, or never: it returns those
// sessions.
func (a *attribution) covered(p *process, found []uint32, ktime uint64) (maybe []*session, yes bool) {
	for _, n := range found {
		w := a.index.targets[n].deniedTarget
		if w == nil || len(w.calls) == 0 {
			continue
		}
		if p.trees != nil {
			for m := p.trees; m != nil; m = m.outer {
				if w.coveredBy(m.session, ktime) {
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
			if w.coveredBy(s, ktime) && !slices.Contains(maybe, s) {
				maybe = append(maybe, s)
			}
		}
	}
	slices.SortFunc(maybe, func(a, b *session) int { return a.number - b.number })
	return maybe, false
}

// addHit keeps a hit, as far as the bounds allow.
func (a *attribution) addHit(w *deniedTarget, s deniedHit, text []byte) {
	for i := range w.hits {
		if have := &w.hits[i]; have.text == string(text) && slices.Equal(have.maybe, s.maybe) {
			have.last = max(have.last, s.last)
			return
		}
	}
	if len(w.hits) == maxDeniedHits || a.hitBytes+len(text) > deniedHitBytes {
		// There is no room for its text. That it may be covered is dropped too.
		w.lastDropped = max(w.lastDropped, s.last)
		return
	}
	a.hitBytes += len(text)
	s.text = string(text)
	w.hits = append(w.hits, s)
}

// addDenied assigns to each denied call the effects on its targets after the denial.
func (a *attribution) addDenied(c codes) {
	for _, d := range a.policy.decisions {
		if !d.timed || !d.denied() {
			continue
		}
		texts, over := a.hitsOn(d, d.targets)
		slices.Sort(texts)
		for _, text := range texts {
			d.effects.add([]byte(text))
		}
		d.effects.cut = d.effects.cut || over
		if len(d.effects.list) > 0 || d.effects.cut {
			c.addFor(schemas.AmbiguityDeniedEffects, d.event.ToolCallID)
		}
		if texts, over := a.hitsOn(d, d.hosts); len(texts) > 0 || over {
			c.addFor(schemas.AmbiguityTargetsUnknown, d.event.ToolCallID)
		}
	}
}

// hitsOn returns the effects on some targets after a call's denial, and whether there
// were more.
func (a *attribution) hitsOn(d *decision, targets []uint32) (texts []string, over bool) {
	for _, n := range targets {
		w := a.index.targets[n].deniedTarget
		for i := range w.hits {
			if s := &w.hits[i]; s.last > d.end && !slices.ContainsFunc(s.maybe, func(s *session) bool { return !s.known }) {
				texts = append(texts, s.text)
			}
		}
		over = over || w.lastDropped > d.end
	}
	return texts, over
}

// addUnobservable adds the denied calls that named more than the log has, and those with targets that are noise. The kernel layer
// has no line for a plain read of noise, so it is not known whether one happened. A call
// without targets has nothing that could be seen.
func (a *attribution) addUnobservable(c codes) {
	for _, d := range a.policy.decisions {
		if d.timed && d.denied() && (d.cut || slices.ContainsFunc(d.targets, func(n uint32) bool {
			return a.noise.Find([]byte(a.index.targets[n].text), 0) >= 0
		})) {
			c.addFor(schemas.AmbiguityTargetsUnknown, d.event.ToolCallID)
		}
		if d.timed && d.denied() && len(d.targets) == 0 && !d.cut {
			c.addFor(schemas.NoteNotWatched, d.event.ToolCallID)
		}
	}
}
