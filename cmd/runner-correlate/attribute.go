package main

import (
	"cmp"
	"math"
	"slices"

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

	inCall, setup, idle, agent uint64 // lines by class
	hitBytes                   int    // bytes of hits

	text    []byte
	subject subject
}

func newAttribution(runID string, p *policyLog) (*attribution, error) {
	table, err := noise.New(schemas.NoiseV0)
	if err != nil {
		return nil, err
	}
	index := p.index
	a := &attribution{policy: p, index: index, noise: table, budget: budget{order: p.decisions}}
	index.seal()
	a.unassigned = newSegments(p.decisions)
	a.denied = index.cover(p)
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
	if effect {
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
	called, after := false, false
	for m := in; m != nil; m = m.outer {
		s := m.session
		s.lines++
		window, before := s.windows.at(ktime)
		if window != nil {
			called = true
			if d := window.call; d != nil {
				a.inWindow(d, e, effect)
			}
		}
		after = after || before != nil
	}
	switch {
	case called:
		a.inCall++
	case after:
		a.idle++
		for m := in; m != nil; m = m.outer {
			if _, before := m.session.windows.at(ktime); before != nil {
				before.idle = true
			}
		}
	default:
		a.setup++
	}
}

// inWindow assigns a line to the only call that ran at its time.
func (a *attribution) inWindow(d *decision, e *schemas.KernelEvent, effect bool) {
	d.lines++
	if effect && !d.outside && d.allowed() {
		d.hasEffects = true
		if !a.index.matches(d.targets, a.subject.name) {
			maybeHost := a.subject.address && len(d.hosts) > 0
			d.maybeHost, d.outside = d.maybeHost || maybeHost, !maybeHost
		}
	}
	a.list(d, e)
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
		a.tree.execs.add(len(a.tree.path)-1, e.Value)
	}
}

// segments are the times between the starts and ends of calls. Which of them form
// one window is known only after all servers were found.
type segments struct {
	list []segment
	last int
}

type segment struct {
	start uint64
	lines uint64      // lines in this segment; after sum, in this and all earlier segments
	calls []*decision // calls whose window includes it, at most maxTogether
	more  bool        // there are more such calls
}

// maxTogether is how many calls of different sessions are followed at one time.
const maxTogether = 4

// newSegments divides time at the starts and ends of the calls that have a window of
// their own, considering only their session.
func newSegments(all []*decision) segments {
	type edge struct {
		at    uint64
		call  *decision
		begin bool
	}
	var edges []edge
	for _, d := range all {
		if d.exclusiveInSession {
			edges = append(edges, edge{d.start, d, true})
			if d.end < math.MaxUint64 {
				edges = append(edges, edge{d.end + 1, d, false})
			}
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	s := segments{list: []segment{{}}}
	var inFlight []*decision
	for i, e := range edges {
		if e.begin {
			inFlight = append(inFlight, e.call)
		} else {
			inFlight = slices.DeleteFunc(inFlight, func(d *decision) bool { return d == e.call })
		}
		if i+1 < len(edges) && edges[i+1].at == e.at {
			continue
		}
		n := min(len(inFlight), maxTogether)
		s.list = append(s.list, segment{start: e.at, calls: slices.Clone(inFlight[:n]), more: n < len(inFlight)})
	}
	return s
}

// find returns the index of the segment that contains a time.
func (s *segments) find(ktime uint64) int {
	i, ok := slices.BinarySearchFunc(s.list, ktime, func(a segment, t uint64) int { return cmp.Compare(a.start, t) })
	if !ok {
		i--
	}
	// A cut at time 0 makes two segments with the same start; take the later one.
	for i+1 < len(s.list) && s.list[i+1].start == ktime {
		i++
	}
	return i
}

// at returns the segment that contains a time.
func (s *segments) at(ktime uint64) *segment {
	i := s.last
	if s.list[i].start > ktime || i+1 < len(s.list) && s.list[i+1].start <= ktime {
		i = s.find(ktime)
		s.last = i
	}
	return &s.list[i]
}

// sum makes the counts cumulative.
func (s *segments) sum() {
	for i := 1; i < len(s.list); i++ {
		s.list[i].lines += s.list[i-1].lines
	}
}

func (s *segments) total() uint64 { return s.list[len(s.list)-1].lines }

// window counts the lines in a call's window, and reports whether all its effects
// were examined.
func (s *segments) window(d *decision) (lines uint64, all bool) {
	from, to := s.find(d.start), s.find(d.end)
	lines = s.list[to].lines
	if from > 0 {
		lines -= s.list[from-1].lines
	}
	all = true
	for _, g := range s.list[from : to+1] {
		all = all && (!g.more || slices.Contains(g.calls, d))
	}
	return lines, all
}
