package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// ran is what the kernel lines say about a decision's call.
type ran struct {
	overlaps bool // another call of its tree ran at the same time
	alone    bool // it has a window of its own, as far as its session knows
	lines    uint64
	effects  effectSet
	outside  bool // an effect matched no target
	unsure   bool // one may be on a host among the targets, or not
	any      bool // there was an effect
}

// until is the end of a call; one that nobody saw end goes on.
func (d *decision) until() uint64 {
	if !d.ended {
		return math.MaxUint64
	}
	return d.end
}

// windows are the times of a session's calls, merged where they touch.
type windows struct {
	list []window
	last int // where the last search ended: lines come in the order of time, mostly
}

// window is a time in which one call ran, or several that overlap.
type window struct {
	start, end uint64
	call       *decision // when it has this window to itself
	ending     string    // id of the call that ended last
	idle       bool      // lines came after it, before the next
}

// at is the window that holds a time, or nil, and the one that ended last before
// it, or nil.
func (w *windows) at(ktime uint64) (in, before *window) {
	i := w.last
	if i >= len(w.list) || w.list[i].start > ktime || i+1 < len(w.list) && w.list[i+1].start <= ktime {
		i, _ = slices.BinarySearchFunc(w.list, ktime, func(a window, t uint64) int {
			if a.start <= t {
				return -1
			}
			return 1
		})
		i--
	}
	if i < 0 {
		return nil, nil
	}
	w.last = i
	if ktime <= w.list[i].end {
		return &w.list[i], nil
	}
	return nil, &w.list[i]
}

// plan makes the windows of all sessions and says which calls share their time
// with another of their session, or their id with any other.
func (p *policyLog) plan() {
	p.markRepeated()
	by := make([][]*decision, len(p.sessions))
	for _, d := range p.decisions {
		if d.timed {
			by[d.session.number] = append(by[d.session.number], d)
		}
	}
	for i, s := range p.sessions {
		s.windows = newWindows(by[i])
		for _, d := range by[i] {
			d.alone = d.ended && !d.overlaps && !d.repeated
		}
		for j := range s.windows.list {
			w := &s.windows.list[j]
			if w.call != nil && !w.call.alone {
				w.call = nil
			}
		}
	}
}

// markRepeated finds ids that several calls have. Attempts of one call may share it.
func (p *policyLog) markRepeated() {
	first := map[string]*decision{}
	for _, d := range p.decisions {
		f := first[d.rawID]
		switch {
		case f == nil:
			first[d.rawID] = d
		case !d.timed || f.session != d.session || f.number != d.number:
			f.repeated = true
		}
	}
	for _, d := range p.decisions {
		d.repeated = first[d.rawID].repeated
	}
}

// newWindows merges the times of calls that share a tree and marks those that
// overlap. Both ends belong to a window.
func newWindows(calls []*decision) *windows {
	slices.SortStableFunc(calls, func(a, b *decision) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.until(), b.until()))
	})
	w := &windows{}
	var first *decision // of the window at hand
	for _, d := range calls {
		id := d.event.ToolCallID
		n := len(w.list)
		if n == 0 || d.start > w.list[n-1].end {
			w.list, first = append(w.list, window{start: d.start, end: d.until(), call: d, ending: id}), d
			continue
		}
		l := &w.list[n-1]
		l.call, d.overlaps, first.overlaps = nil, true, true
		switch until := d.until(); {
		case until > l.end:
			l.end, l.ending = until, id
		case until == l.end:
			l.ending = min(l.ending, id)
		}
	}
	return w
}

// settle ends what can be known only after the kernel stream: which sessions
// share a tree, and so which of their calls overlap.
func (p *policyLog) settle() {
	trees := map[int][]*decision{}
	several := map[int]bool{}
	of := map[int]*session{}
	for _, d := range p.decisions {
		if !d.timed {
			continue
		}
		tree := -1 // all of which nobody knows the server
		if d.session.known {
			tree = d.session.root
		}
		if of[tree] == nil {
			of[tree] = d.session
		}
		several[tree] = several[tree] || of[tree] != d.session
		trees[tree] = append(trees[tree], d)
	}
	for tree, calls := range trees {
		if several[tree] {
			newWindows(calls)
		}
	}
}

// own reports whether a call has a window of its own.
func (d *decision) own() bool { return d.alone && !d.overlaps }

// unite notes that two sessions have the same server, and so the same tree.
func unite(sessions []*session, a, b *session) {
	from, to := max(a.root, b.root), min(a.root, b.root)
	for _, s := range sessions {
		if s.root == from {
			s.root = to
		}
	}
}

// codesOf adds what the decision log alone says.
func (p *policyLog) codesOf(c codes) {
	for _, s := range p.sessions {
		if !s.finished {
			c.of(schemas.AmbiguitySessionNotFinished, s.name)
		}
	}
	for _, d := range p.decisions {
		id := d.event.ToolCallID
		if d.repeated {
			c.of(schemas.AmbiguityCallIDRepeated, id)
		}
		if d.timed && d.overlaps {
			c.of(schemas.AmbiguityCallsOverlap, id)
		}
		gone := d.event.Outcome == schemas.OutcomeServerGone || d.event.Outcome == schemas.OutcomeClientGone
		if d.timed && d.allowed() && (!d.ended || gone) {
			c.of(schemas.AmbiguityCallNotFinished, id)
		}
	}
}
