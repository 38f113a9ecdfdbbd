package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The rule that compares the layer times with what the report says of calls at the same time. All
// calls of one session are of one tree; which sessions share a tree is not in the archive.

const ruleTimesCalls = "times.calls"

// callTimes are the times of the calls of runner-policy, in the order of the policy layer. One
// whose end nobody saw goes on.
type callTimes struct {
	list    []callTime
	unknown bool // the times of some call are not those of the proxy
}

type callTime struct {
	place      int // in the policy layer
	start, end uint64
}

// callTime takes in a line of the layer times.
func (v *verifier) callTime(e *schemas.TimeEvent) {
	if e.Layer != schemas.LayerPolicy || e.Line >= uint64(len(v.policy.list)) || !v.policy.list[e.Line].timed {
		return
	}
	t := &v.times.calls
	if e.Source != schemas.TimeProxy {
		t.unknown = true
		return
	}
	c := callTime{int(e.Line), e.NS, math.MaxUint64}
	if e.HasEnd {
		c.end = e.EndNS
	}
	t.list = append(t.list, c)
}

// timesCalls checks that decisions of one id are in the order of their starts and that, where
// there is one session, those calls overlap that the report says. Others may: their lines were told apart.
func (v *verifier) timesCalls() {
	t := &v.times.calls
	if !v.sound(timesLayerName) || v.times.lost {
		return
	}
	for i := 1; i < len(t.list); i++ {
		a, b := &t.list[i-1], &t.list[i]
		if b.place == a.place+1 && b.start < a.start && v.policy.list[a.place].id == v.policy.list[b.place].id {
			v.add(ruleTimesCalls, timesLayerName, 0, "decision %d of %.100q starts before the one that precedes it", b.place, v.policy.list[b.place].id)
		}
	}
	if t.unknown || v.sessions() != 1 {
		return
	}
	want, has := v.overlapping(), v.ambiguities().of[schemas.AmbiguityCallsOverlap]
	for _, id := range sortedKeys(has) {
		if !want[id] {
			v.add(ruleTimesCalls, bundle.ReportName, 0, "%s:%.200q, but by the layer times no other call ran at the same time", schemas.AmbiguityCallsOverlap, id)
		}
	}
}

// overlapping are the ids of the calls that overlap another one. Starts and ends are included.
func (v *verifier) overlapping() map[string]bool {
	list, ids := slices.Clone(v.times.calls.list), map[string]bool{}
	slices.SortFunc(list, func(a, b callTime) int { return cmp.Compare(a.start, b.start) })
	last := 0 // the call before that ends last
	for i := 1; i < len(list); i++ {
		if list[i].start <= list[last].end {
			ids[v.policy.list[list[i].place].id], ids[v.policy.list[list[last].place].id] = true, true
		}
		if list[i].end > list[last].end {
			last = i
		}
	}
	return ids
}
