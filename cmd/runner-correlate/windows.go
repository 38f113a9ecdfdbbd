package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// observed is what the kernel lines say about a decision's call.
type observed struct {
	overlaps           bool // another call of its session ran at the same time
	across             bool // another call of its tree, but of another session, ran at the same time
	mixed              bool // a line of that time cannot be told to be of one of the calls
	exclusiveInSession bool // it has a window of its own, considering only its session
	lines              uint64
	effects            effectSet
	outside            bool // an effect matched no target
	maybeHost          bool // an effect may be on a host among the targets
	hasEffects         bool
}

// maxTogether is how many calls of one window are compared with its lines.
const maxTogether = 512

// active returns the calls of a window that ran at a time. If the window has too many to look at, it
// returns the first of them, and all its calls are mixed.
func (w *window) active(ktime uint64) (list []*decision) {
	w.crowded = w.crowded || len(w.calls) > maxTogether
	for _, d := range w.calls[:min(len(w.calls), maxTogether)] {
		if d.start <= ktime && ktime <= d.until() {
			list = append(list, d)
		}
	}
	return list
}

// until is the end of a call. A call without a recorded end never ends.
func (d *decision) until() uint64 {
	if !d.ended {
		return math.MaxUint64
	}
	return d.end
}

// windows are the times of a session's calls, merged where they touch.
type windows struct {
	list []window
	last int // index that the last search returned: lines mostly come in order of time
}

// window is a time in which one call ran, or several that overlap.
type window struct {
	start, end uint64
	call       *decision   // the only call in it; nil if there are several
	calls      []*decision // if there are several
	crowded    bool        // there was a line when too many of them ran
	ending     string      // id of the call that ended last
	idle       bool        // there were lines between its end and the next window
}

// at returns the window that contains a time, and otherwise the window that ended
// last before it. Each may be nil.
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

// plan makes the windows of all sessions. It marks the calls that overlap with
// another call of their session, and those whose id another call has too.
func (p *policyLog) plan() {
	p.markRepeated()
	calls := make([][]*decision, len(p.sessions))
	for _, d := range p.decisions {
		if d.timed {
			calls[d.session.number] = append(calls[d.session.number], d)
		}
	}
	for i, s := range p.sessions {
		s.planRequests()
		s.windows = newWindows(calls[i], func(d *decision) { d.overlaps = true })
		for _, d := range calls[i] {
			d.exclusiveInSession = d.ended && !d.overlaps && !d.repeated
		}
		for j := range s.windows.list {
			w := &s.windows.list[j]
			if w.call != nil && !w.call.exclusiveInSession {
				w.call = nil
			}
		}
	}
}

// markRepeated marks the calls whose id several calls have. Attempts of one call may
// share an id.
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

// newWindows merges the times of calls that share a tree, and calls mark for those that
// overlap. A window includes its start and its end.
func newWindows(calls []*decision, mark func(*decision)) *windows {
	slices.SortStableFunc(calls, func(a, b *decision) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.until(), b.until()))
	})
	w := &windows{}
	var first *decision // of the current window
	for _, d := range calls {
		id := d.event.ToolCallID
		n := len(w.list)
		if n == 0 || d.start > w.list[n-1].end {
			w.list, first = append(w.list, window{start: d.start, end: d.until(), call: d, ending: id}), d
			continue
		}
		l := &w.list[n-1]
		if l.call != nil {
			l.call, l.calls = nil, []*decision{first}
			mark(first)
		}
		l.calls = append(l.calls, d)
		mark(d)
		switch until := d.until(); {
		case until > l.end:
			l.end, l.ending = until, id
		case until == l.end:
			l.ending = min(l.ending, id)
		}
	}
	return w
}

// resolveOverlaps marks the calls of different sessions that overlap. It runs after
// the kernel stream: only then is it known which sessions share a tree.
func (p *policyLog) resolveOverlaps() {
	trees := map[int][]*decision{}
	several := map[int]bool{}
	first := map[int]*session{}
	for _, d := range p.decisions {
		if !d.timed {
			continue
		}
		tree := -1 // of all sessions whose server is unknown
		if d.session.known {
			tree = d.session.root
		}
		if first[tree] == nil {
			first[tree] = d.session
		}
		several[tree] = several[tree] || first[tree] != d.session
		trees[tree] = append(trees[tree], d)
	}
	for tree, calls := range trees {
		if several[tree] {
			newWindows(calls, func(d *decision) { d.across = true })
		}
	}
}

// together reports whether the call ran beside others, and what happened then cannot all be told
// apart. It is known after the kernel stream.
func (d *decision) together() bool {
	if d.session.known {
		return d.mixed || d.across
	}
	return d.overlaps || d.across
}

// exclusiveWindow reports whether a call has a window of its own.
func (d *decision) exclusiveWindow() bool {
	return d.timed && d.ended && !d.repeated && !d.together()
}

// addCrowded marks the calls of windows in which too many ran to tell lines apart.
func (w *windows) addCrowded() {
	for i := range w.list {
		if w.list[i].crowded {
			for _, d := range w.list[i].calls {
				d.mixed = true
			}
		}
	}
}

// mergeTrees records that two sessions have the same server, and so the same tree.
func mergeTrees(sessions []*session, a, b *session) {
	from, to := max(a.root, b.root), min(a.root, b.root)
	for _, s := range sessions {
		if s.root == from {
			s.root = to
		}
	}
}

// addCodes adds the codes that follow from the decision log only.
func (p *policyLog) addCodes(c codes) {
	for _, s := range p.sessions {
		if !s.finished {
			c.addFor(schemas.AmbiguitySessionNotFinished, s.name)
		}
		if len(s.policies) > 1 {
			c.addFor(schemas.NoteReloaded, s.name)
		}
	}
	for _, d := range p.decisions {
		id := d.event.ToolCallID
		if d.repeated {
			c.addFor(schemas.AmbiguityCallIDRepeated, id)
		}
		if d.timed && d.together() {
			c.addFor(schemas.AmbiguityCallsOverlap, id)
		}
		if d.timed && d.allowed() && d.cancelled() {
			c.addFor(schemas.NoteCallCancelled, id)
		}
		gone := d.event.Outcome == schemas.OutcomeServerGone || d.event.Outcome == schemas.OutcomeClientGone
		if d.timed && d.allowed() && (!d.ended || gone) {
			c.addFor(schemas.AmbiguityCallNotFinished, id)
		}
	}
}
