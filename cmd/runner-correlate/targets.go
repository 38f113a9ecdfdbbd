package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// targetIndex numbers the targets of decisions, so that the value of a line is looked
// up once, for any number of calls.
type targetIndex struct {
	numbers map[string]uint32
	targets []target
	ports   map[uint16]uint32 // ports of named hosts → the target that represents the port
	sieve   []uint64          // a Bloom filter of the targets: most values are not targets
	found   []uint32          // of match
	matched bool              // found is up to date for the current line
}

// target is one path or endpoint.
type target struct {
	text string
	*deniedTarget
}

// deniedTarget is what is known about a target when calls were denied.
type deniedTarget struct {
	denied      uint64 // the earliest denial of a call that names it
	calls       []coveringCall
	hits        []deniedHit
	lastDropped uint64 // time of the last effect for which hits had no room
	rules       []ruled
}

// ruled is a session that may not touch a target after a time: a rule that denies names it, or a
// request that was denied then.
type ruled struct {
	session *session
	since   uint64
}

// coveringCall is a time in which effects on a target belong to an allowed call.
type coveringCall struct {
	session    *session
	start, end uint64
}

func newTargetIndex() *targetIndex {
	return &targetIndex{numbers: map[string]uint32{}, ports: map[uint16]uint32{}}
}

func (x *targetIndex) number(text string) uint32 {
	n, ok := x.numbers[text]
	if !ok {
		n = uint32(len(x.targets))
		x.targets = append(x.targets, target{text: text})
		x.numbers[text] = n
	}
	return n
}

// texts are the targets with some numbers, nil for none.
func (x *targetIndex) texts(numbers []uint32) (list []string) {
	for _, n := range numbers {
		list = append(list, x.targets[n].text)
	}
	return list
}

// seal is called when all targets have their numbers.
func (x *targetIndex) seal() {
	size := 64
	for size < len(x.targets) {
		size *= 2
	}
	x.sieve = make([]uint64, size/4) // 16 bits per target
	for i := range x.targets {
		h := uint64(hashStart)
		for _, c := range []byte(x.targets[i].text) {
			h = hashStep(h, c)
		}
		w, bit := x.place(h)
		x.sieve[w] |= bit
	}
}

// The hash is computed byte by byte (FNV-1a), so that every directory above a path has
// its hash on the way.
const hashStart = 14695981039346656037

func hashStep(h uint64, c byte) uint64 { return (h ^ uint64(c)) * 1099511628211 }

func (x *targetIndex) place(h uint64) (word int, bit uint64) {
	h ^= h >> 32
	n := h & uint64(len(x.sieve)*64-1)
	return int(n / 64), 1 << (n % 64)
}

// next is called before every line.
func (x *targetIndex) next() { x.matched = false }

// match returns the targets that are equal to the value of the current line, or a
// directory above it, from the top down.
func (x *targetIndex) match(value []byte) []uint32 {
	if x.matched {
		return x.found
	}
	x.found, x.matched = x.found[:0], true
	if schemas.HasDotDot(value) {
		h := uint64(hashStart)
		for _, c := range value {
			h = hashStep(h, c)
		}
		x.look(value, h)
		return x.found
	}
	h := uint64(hashStart)
	for i, c := range value {
		if c == '/' && i > 0 {
			x.look(value[:i], h)
		}
		if h = hashStep(h, c); i == 0 && c == '/' && len(value) > 1 {
			x.look(value[:1], h)
		}
	}
	x.look(value, h)
	return x.found
}

func (x *targetIndex) look(name []byte, h uint64) {
	if w, bit := x.place(h); x.sieve[w]&bit == 0 {
		return
	}
	if n, ok := x.numbers[string(name)]; ok {
		x.found = append(x.found, n)
	}
}

// matches reports whether one of the given targets is the value or a directory above
// it.
func (x *targetIndex) matches(targets []uint32, value []byte) bool {
	if len(targets) > 8 || x.matched {
		for _, n := range x.match(value) {
			if _, ok := slices.BinarySearch(targets, n); ok {
				return true
			}
		}
		return false
	}
	for _, n := range targets {
		if t := x.targets[n].text; schemas.TargetHolds(t, value) {
			return true
		}
	}
	return false
}

// deniedTargetOf returns the entry of a target, which it makes if there is none.
func (x *targetIndex) deniedTargetOf(n uint32) *deniedTarget {
	t := &x.targets[n]
	if t.deniedTarget == nil {
		t.deniedTarget = &deniedTarget{denied: math.MaxUint64}
	}
	return t.deniedTarget
}

// cover records the windows of allowed calls and the denials at their targets. It
// reports whether calls were denied, and whether rules or denied requests name something.
func (x *targetIndex) cover(p *policyLog) (anyDenied, anyRuled bool) {
	for _, s := range p.sessions {
		for _, n := range s.denies {
			w := x.deniedTargetOf(n)
			w.rules, anyRuled = append(w.rules, ruled{session: s}), true
		}
		for _, r := range s.requests {
			for _, n := range r.targets {
				if r.denied {
					w := x.deniedTargetOf(n)
					w.rules, anyRuled = append(w.rules, ruled{s, r.end}), true
				}
			}
		}
	}
	for _, d := range p.decisions {
		if d.timed && d.denied() {
			anyDenied = true
			for _, n := range slices.Concat(d.targets, d.hosts) {
				w := x.deniedTargetOf(n)
				w.denied = min(w.denied, d.end)
			}
		}
	}
	if !anyDenied && !anyRuled {
		return false, false
	}
	for _, d := range p.decisions {
		if d.timed && d.allowed() {
			for _, n := range d.excuses {
				w := x.deniedTargetOf(n)
				w.calls = append(w.calls, coveringCall{d.session, d.start, d.until()})
			}
		}
	}
	for i := range x.targets {
		t := x.targets[i].deniedTarget
		if t == nil {
			continue
		}
		slices.SortFunc(t.calls, func(a, b coveringCall) int {
			return cmp.Or(cmp.Compare(a.session.number, b.session.number), cmp.Compare(a.start, b.start))
		})
		t.calls = slices.Clip(mergeCoveringCalls(t.calls))
	}
	return anyDenied, anyRuled
}

// mergeCoveringCalls merges the calls of a session that overlap.
func mergeCoveringCalls(list []coveringCall) []coveringCall {
	out := list[:0]
	for _, e := range list {
		if n := len(out); n > 0 && out[n-1].session == e.session && e.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, e.end)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// coveredBy reports whether the session had an allowed call on the target at a time.
func (t *deniedTarget) coveredBy(s *session, ktime uint64) bool {
	i, _ := slices.BinarySearchFunc(t.calls, coveringCall{s, ktime, 0}, func(a, b coveringCall) int {
		return cmp.Or(cmp.Compare(a.session.number, b.session.number), cmp.Compare(a.start, b.start))
	})
	// i is the first call that starts at this time or later.
	for _, i := range [2]int{i - 1, i} {
		if i >= 0 && i < len(t.calls) && t.calls[i].session == s && t.calls[i].start <= ktime && ktime <= t.calls[i].end {
			return true
		}
	}
	return false
}
