package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// targetIndex numbers what decisions name, so that a value is looked up once
// however many calls there are.
type targetIndex struct {
	numbers map[string]uint32
	targets []target
	ports   map[uint16]uint32 // of hosts that are named, and what stands for them
	sieve   []uint64          // a bit for each hash of a target: most names are none
	found   []uint32          // of match
	looked  bool              // found is that of the line at hand
}

// target is one path or endpoint.
type target struct {
	text string
	*deniedTarget
}

// deniedTarget is what matters about a target when calls were denied.
type deniedTarget struct {
	denied uint64 // the earliest denial of a call that names it
	calls  []coveringCall
	seen   []deniedHit
	over   uint64 // time of the last effect that found no room in seen
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

// seal is called when all targets have their numbers.
func (x *targetIndex) seal() {
	size := 64
	for size < len(x.targets) {
		size *= 2
	}
	x.sieve = make([]uint64, size/4) // 16 bits a target
	for i := range x.targets {
		h := uint64(hashStart)
		for _, c := range []byte(x.targets[i].text) {
			h = hashStep(h, c)
		}
		w, bit := x.place(h)
		x.sieve[w] |= bit
	}
}

// The hash is one that grows with a name, byte by byte (FNV-1a).
const hashStart = 14695981039346656037

func hashStep(h uint64, c byte) uint64 { return (h ^ uint64(c)) * 1099511628211 }

func (x *targetIndex) place(h uint64) (word int, bit uint64) {
	h ^= h >> 32
	n := h & uint64(len(x.sieve)*64-1)
	return int(n / 64), 1 << (n % 64)
}

// next is called in front of every line.
func (x *targetIndex) next() { x.looked = false }

// match returns the targets that are the value of the line at hand, or a directory
// above it, the highest first.
func (x *targetIndex) match(value []byte) []uint32 {
	if x.looked {
		return x.found
	}
	x.found, x.looked = x.found[:0], true
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

// matches reports whether one of the given targets is the value or above it.
func (x *targetIndex) matches(targets []uint32, value []byte) bool {
	if len(targets) > 8 || x.looked {
		for _, n := range x.match(value) {
			if _, ok := slices.BinarySearch(targets, n); ok {
				return true
			}
		}
		return false
	}
	for _, n := range targets {
		if t := x.targets[n].text; below(value, t) {
			return true
		}
	}
	return false
}

// below reports whether a value is the target or lies below it, by component.
func below(value []byte, target string) bool {
	n := len(target)
	if n > len(value) || string(value[:n]) != target {
		return false
	}
	return n == len(value) || (value[n] == '/' || target == "/") && !schemas.HasDotDot(value)
}

func (x *targetIndex) deniedTargetOf(n uint32) *deniedTarget {
	t := &x.targets[n]
	if t.deniedTarget == nil {
		t.deniedTarget = &deniedTarget{denied: math.MaxUint64}
	}
	return t.deniedTarget
}

// cover notes the windows of allowed calls at their targets, and the denials.
func (x *targetIndex) cover(p *policyLog) (anyDenied bool) {
	for _, d := range p.decisions {
		if d.timed && d.denied() {
			anyDenied = true
			for _, n := range slices.Concat(d.targets, d.hosts) {
				w := x.deniedTargetOf(n)
				w.denied = min(w.denied, d.end)
			}
		}
	}
	if !anyDenied {
		return false
	}
	for _, d := range p.decisions {
		if d.timed && d.allowed() {
			for _, n := range slices.Concat(d.targets, d.hosts) {
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
	return true
}

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

// by reports whether the session had a call on the target at the time.
func (t *deniedTarget) by(s *session, ktime uint64) bool {
	i, _ := slices.BinarySearchFunc(t.calls, coveringCall{s, ktime, 0}, func(a, b coveringCall) int {
		return cmp.Or(cmp.Compare(a.session.number, b.session.number), cmp.Compare(a.start, b.start))
	})
	// i is the first that begins at the time or later.
	for _, i := range [2]int{i - 1, i} {
		if i >= 0 && i < len(t.calls) && t.calls[i].session == s && t.calls[i].start <= ktime && ktime <= t.calls[i].end {
			return true
		}
	}
	return false
}
