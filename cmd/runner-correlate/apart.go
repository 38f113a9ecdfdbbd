package main

import (
	"cmp"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// Which of several calls a line belongs to: those that run at the same time, and those
// that had ended before.

// depth is how closely a call names what the current line is about: the length of its
// longest target that is the value or a directory above it, 0 for a name beside a target, -1 for
// none.
func (a *attribution) depth(d *decision, e *schemas.KernelEvent) int {
	if len(d.targets) == 0 || len(a.subject.name) == 0 {
		return -1
	}
	if a.index.matches(d.targets, a.subject.name) {
		found := a.index.match(a.subject.name)
		for i := len(found) - 1; i >= 0; i-- {
			if _, ok := slices.BinarySearch(d.targets, found[i]); ok {
				return len(a.index.targets[found[i]].text)
			}
		}
	}
	if schemas.SetOf(e.EventType) == schemas.SetFilesystemPaths {
		verb := schemas.EffectVerb(e)
		for _, n := range d.targets {
			if schemas.TargetBeside(a.index.targets[n].text, verb, a.subject.name) {
				return 0
			}
		}
	}
	return -1
}

// only returns the one of several calls that a line is of, nil if that is not known: the
// only one that was allowed, or the one that names the value most closely.
func (a *attribution) only(calls []*decision, e *schemas.KernelEvent) (of *decision) {
	allowed := 0
	for _, d := range calls {
		if d.allowed() {
			allowed++
			of = d
		}
	}
	if allowed == 0 && len(calls) == 1 {
		return calls[0]
	}
	if allowed < 2 {
		return of
	}
	best, tie := -1, true
	for _, d := range calls {
		if !d.allowed() {
			continue
		}
		n := a.depth(d, e)
		if n < 0 && a.subject.address && len(d.hosts) > 0 {
			n = 0
		}
		if n > best {
			of, best, tie = d, n, false
		} else if n == best {
			tie = true
		}
	}
	if tie {
		return nil
	}
	return of
}

// inNone takes in a line that may be of several calls. An effect that none of them names is
// outside of what they were asked for, whichever did it.
func (a *attribution) inNone(calls []*decision, e *schemas.KernelEvent, effect bool) {
	named := false
	for _, d := range calls {
		d.mixed = true
		named = named || d.allowed() && (len(d.targets) == 0 && !d.cut || a.depth(d, e) >= 0)
	}
	for _, d := range calls {
		if !effect || !d.allowed() {
			continue
		}
		if d.hasEffects = true; !named {
			a.outside(d)
		}
	}
}

// callIndex has the calls of each target that were allowed and have ended, by session and end.
type callIndex struct {
	policy *policyLog
	first  []uint32 // target → its first place in calls; one more entry for the end
	calls  []uint32 // places in the policy's decisions
}

func newCallIndex(p *policyLog) *callIndex {
	x := &callIndex{policy: p, first: make([]uint32, len(p.index.targets)+1)}
	of := func(d *decision) []uint32 {
		if !d.timed || !d.ended || !d.allowed() {
			return nil
		}
		return d.targets
	}
	for _, d := range p.decisions {
		for _, n := range of(d) {
			x.first[n+1]++
		}
	}
	for i := range p.index.targets {
		x.first[i+1] += x.first[i]
	}
	x.calls = make([]uint32, x.first[len(p.index.targets)])
	next := slices.Clone(x.first)
	for i, d := range p.decisions {
		for _, n := range of(d) {
			x.calls[next[n]] = uint32(i)
			next[n]++
		}
	}
	for n := range p.index.targets {
		slices.SortFunc(x.of(uint32(n)), func(a, b uint32) int {
			c, d := p.decisions[a], p.decisions[b]
			return cmp.Or(cmp.Compare(c.session.number, d.session.number), cmp.Compare(c.end, d.end), cmp.Compare(a, b))
		})
	}
	return x
}

func (x *callIndex) of(target uint32) []uint32 { return x.calls[x.first[target]:x.first[target+1]] }

// before returns the call of a session that names a target and had ended last before a time, nil
// for none.
func (x *callIndex) before(target uint32, s *session, ktime uint64) *decision {
	list := x.of(target)
	i, _ := slices.BinarySearchFunc(list, ktime, func(place uint32, t uint64) int {
		d := x.policy.decisions[place]
		return cmp.Or(cmp.Compare(d.session.number, s.number), cmp.Compare(d.end, t))
	})
	if i == 0 {
		return nil
	}
	if d := x.policy.decisions[list[i-1]]; d.session == s && d.end < ktime {
		return d
	}
	return nil
}

// closest returns the call of a session that had ended before a time and names the subject of the
// current line most closely, and how closely.
func (a *attribution) closest(s *session, ktime uint64) (*decision, int) {
	if len(a.calls.calls) == 0 || len(a.subject.name) == 0 {
		return nil, -1
	}
	found := a.index.match(a.subject.name)
	for i := len(found) - 1; i >= 0; i-- {
		if d := a.calls.before(found[i], s, ktime); d != nil {
			return d, len(a.index.targets[found[i]].text)
		}
	}
	return nil, -1
}

// prior returns a call that had ended before a call began and names the subject of the current line, if
// the call does not, or not as closely.
func (a *attribution) prior(d *decision, own int) (of *decision, deeper bool) {
	if !d.ended { // it has no window of its own
		return nil, false
	}
	of, depth := a.closest(d.session, d.start)
	if of == nil || own >= 0 && depth <= own {
		return nil, false
	}
	return of, depth > own
}

// ofCancelled reports whether a line between calls is on what a cancelled call named: its server
// goes on.
func (a *attribution) ofCancelled(s *session, e *schemas.KernelEvent, ktime uint64) bool {
	if len(e.Value) == 0 {
		return false
	}
	d, _ := a.closest(s, ktime)
	return d != nil && d.cancelled()
}

// ofRequests takes in an effect while requests ran that are no tool calls.
func (a *attribution) ofRequests(s *session, list []*request, e *schemas.KernelEvent, ktime uint64) {
	a.requested.add(a.effect(e))
	named := false
	for _, r := range list {
		named = named || len(r.targets) > 0
		if a.index.matches(r.targets, a.subject.name) || a.subject.address && len(r.hosts) > 0 {
			return
		}
	}
	if d, _ := a.closest(s, list[0].start); d != nil {
		if !d.cancelled() {
			a.codes.addFor(schemas.AmbiguityEffectsLate, d.event.ToolCallID)
		}
		return
	}
	if named {
		a.codes.addFor(schemas.AmbiguityRequestEffects, list[0].method)
	}
}
