package main

import (
	"cmp"
	"math"
	"slices"
)

// segments are the times between the starts and ends of calls. Which of them form
// one window is known only after all servers were found.
type segments struct {
	list []segment
	last int
}

type segment struct {
	start uint64
	lines uint64      // lines in this segment; after sum, in this and all earlier segments
	calls []*decision // calls whose window includes it, at most maxSegmentCalls
	more  bool        // there are more such calls
}

// maxSegmentCalls is how many calls of different sessions are followed at one time.
const maxSegmentCalls = 4

// newSegments divides time at the starts and ends of the calls that are of interest.
func newSegments(all []*decision, of func(*decision) bool) segments {
	type edge struct {
		at    uint64
		call  *decision
		begin bool
	}
	var edges []edge
	for _, d := range all {
		if of(d) {
			edges = append(edges, edge{d.start, d, true})
			if until := d.until(); until < math.MaxUint64 {
				edges = append(edges, edge{until + 1, d, false})
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
		n := min(len(inFlight), maxSegmentCalls)
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
