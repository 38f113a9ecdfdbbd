package main

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// Each probe numbers its ring records on each CPU, from 0. So an event that is there twice shows,
// and so do events that are missing: more than the capture says that the ring dropped and that it
// did not write out.
const (
	maxSequences = 1 << 16 // probes on CPUs
	maxHoles     = 1 << 12 // of one sequence, remembered to tell late from twice
)

// sequences are the numbers of all records.
type sequences struct {
	of                map[uint64]*sequence // by CPU and probe
	last              *sequence
	lastOf            uint64
	numbered, without uint64 // events
}

// sequence are the numbers of one probe's records on one CPU.
type sequence struct {
	next  uint64 // above all that came
	floor uint64 // below it, nothing is remembered
	holes []hole // numbers from floor to next that did not come, ascending
}

// hole is a range of numbers, without its end.
type hole struct{ first, end uint64 }

// add takes in one event.
func (s *sequences) add(e *schemas.RawEvent) error {
	if e.Has&schemas.HasProbe == 0 {
		s.without++
		return nil
	}
	s.numbered++
	of := uint64(e.CPU)<<8 | uint64(e.Probe)
	if s.last == nil || s.lastOf != of {
		q, there := s.of[of]
		if !there {
			if len(s.of) == maxSequences {
				return fmt.Errorf("events of more than %d probes on CPUs", maxSequences)
			}
			if s.of == nil {
				s.of = map[uint64]*sequence{}
			}
			q = &sequence{}
			s.of[of] = q
		}
		s.last, s.lastOf = q, of
	}
	if !s.last.add(e.CPUSeq) {
		return fmt.Errorf("cpu_seq %d of probe %d on CPU %d is there twice, or is no number of a record", e.CPUSeq, e.Probe, e.CPU)
	}
	return nil
}

// add reports whether n can be the number of another record. A task can be preempted between taking
// a number and sending the record, so numbers can come late.
func (q *sequence) add(n uint64) bool {
	switch {
	case n == q.next && n+1 != 0:
		q.next++
		return true
	case n > q.next && n+1 != 0:
		if len(q.holes) == maxHoles {
			q.floor = q.holes[maxHoles/2-1].end
			q.holes = slices.Delete(q.holes, 0, maxHoles/2)
		}
		q.holes = append(q.holes, hole{q.next, n})
		q.next = n + 1
		return true
	case n < q.floor:
		return true
	}
	i, _ := slices.BinarySearchFunc(q.holes, n, func(h hole, n uint64) int {
		if h.end <= n {
			return -1
		}
		return 1
	})
	if i == len(q.holes) || q.holes[i].first > n {
		return false
	}
	h := q.holes[i]
	left, right := hole{h.first, n}, hole{n + 1, h.end}
	switch {
	case left.first < left.end && right.first < right.end:
		q.holes = slices.Replace(q.holes, i, i+1, left, right)
	case left.first < left.end:
		q.holes[i] = left
	case right.first < right.end:
		q.holes[i] = right
	default:
		q.holes = slices.Delete(q.holes, i, i+1)
	}
	return true
}

// check compares the numbers with the counters of the capture. Streams of before have none.
func (s *sequences) check(h *schemas.StageHealth) error {
	if s.numbered == 0 {
		return nil
	}
	if inserted := h.Counters[schemas.CounterFileInserted]; s.without != inserted {
		return fmt.Errorf("%d events without the key probe, expected %d: those that did not come through the ring", s.without, inserted)
	}
	var records, carry uint64
	for _, q := range s.of {
		if records, carry = bits.Add64(records, q.next, 0); carry != 0 {
			records = ^uint64(0)
			break
		}
	}
	if seen := h.Counters[schemas.CounterSeen]; records > seen {
		return fmt.Errorf("events are missing: by their cpu_seq, the probes began %d records or more, by the capture's counters %d", records, seen)
	}
	return nil
}
