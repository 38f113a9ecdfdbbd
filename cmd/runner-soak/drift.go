package main

import (
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// Most of what is listed of one fault.
const (
	maxValues  = 20_000
	maxNumbers = 1_000_000
)

// seen collects the values of capability surfaces: set and value → the runs that have it. It keeps
// those that come first in their order, so that it does not matter in which order runs come.
type seen struct {
	runs map[entry][]int
	last *entry // after it nothing is kept
}

type entry struct {
	set   int // index in schemas.SurfaceSets
	value string
}

func (a entry) compare(b entry) int {
	if a.set != b.set {
		return a.set - b.set
	}
	return strings.Compare(a.value, b.value)
}

// add takes a value of a run. All values of a run come together: one can come twice.
func (s *seen) add(run, set int, value string) {
	e := entry{set, value}
	if s.last != nil && e.compare(*s.last) > 0 {
		return
	}
	if s.runs == nil {
		s.runs = map[entry][]int{}
	}
	if have := s.runs[e]; len(have) == 0 || have[len(have)-1] != run {
		s.runs[e] = append(have, run)
	}
	if len(s.runs) >= 2*maxValues {
		s.prune()
	}
}

func (s *seen) sorted() []entry {
	list := make([]entry, 0, len(s.runs))
	for e := range s.runs {
		list = append(list, e)
	}
	slices.SortFunc(list, entry.compare)
	return list
}

func (s *seen) prune() {
	list := s.sorted()
	for _, e := range list[maxValues:] {
		delete(s.runs, e)
	}
	s.last = &list[maxValues-1]
}

// drift is what the values say of the runs that were judged.
func (s *seen) drift(runs []Run) Drift {
	judged := map[int]bool{}
	for i := range runs {
		if runs[i].Status != statusInfra {
			judged[runs[i].Index] = true
		}
	}
	d := Drift{Runs: len(judged), Cut: s.last != nil, Capabilities: []Capability{}}
	numbers := 0
	for _, e := range s.sorted() {
		have := slices.DeleteFunc(slices.Clone(s.runs[e]), func(i int) bool { return !judged[i] })
		if len(have) == 0 {
			continue
		}
		c := Capability{Set: schemas.SurfaceSets[e.set], Value: e.value}
		if len(have) < len(judged) {
			slices.Sort(have)
			c.Runs = have
			numbers += len(have)
		}
		if d.Values == maxValues || numbers > maxNumbers {
			d.Cut = true
			break
		}
		d.Values++
		if c.Runs != nil {
			d.Changing++
		}
		d.Capabilities = append(d.Capabilities, c)
	}
	return d
}

// take adds what a drift says. runs are those that it is about.
func (s *seen) take(d *Drift, runs []Run) bool {
	for i := range d.Capabilities {
		c := &d.Capabilities[i]
		set := slices.Index(schemas.SurfaceSets[:], c.Set)
		if set < 0 {
			return false
		}
		if c.Runs != nil {
			for _, run := range c.Runs {
				s.add(run, set, c.Value)
			}
			continue
		}
		for j := range runs {
			if runs[j].Status != statusInfra {
				s.add(runs[j].Index, set, c.Value)
			}
		}
	}
	if d.Cut && s.last == nil {
		s.last = &entry{set: len(schemas.SurfaceSets)} // nothing is left out here, but there it was
	}
	return true
}
