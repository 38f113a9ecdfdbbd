package main

import (
	"bytes"
	"cmp"
	"math"
	"slices"
)

// targetIndex numbers what decisions name, so that a value is looked up once
// however many calls there are.
type targetIndex struct {
	numbers map[string]uint32
	targets []target
	found   []uint32 // of match
}

// target is one path or endpoint.
type target struct {
	text string
	*watch
}

// watch is what matters about a target when calls were denied.
type watch struct {
	denied  uint64 // the earliest denial of a call that names it
	excuses []excuse
	seen    []sighting
	over    uint64 // time of the last effect that found no room in seen
}

// excuse is a time in which effects on a target belong to an allowed call.
type excuse struct {
	session    *session
	start, end uint64
}

func newTargetIndex() *targetIndex { return &targetIndex{numbers: map[string]uint32{}} }

func (x *targetIndex) number(text string) uint32 {
	n, ok := x.numbers[text]
	if !ok {
		n = uint32(len(x.targets))
		x.targets = append(x.targets, target{text: text})
		x.numbers[text] = n
	}
	return n
}

// match returns the targets that are the value, or a directory above it. It is
// valid until the next call.
func (x *targetIndex) match(value []byte) []uint32 {
	x.found = x.found[:0]
	x.look(value)
	if !climbs(value) {
		return x.found
	}
	for i := len(value) - 1; i > 0; i-- {
		if value[i] == '/' {
			x.look(value[:i])
		}
	}
	if value[0] == '/' && len(value) > 1 {
		x.look(value[:1])
	}
	return x.found
}

func (x *targetIndex) look(name []byte) {
	if n, ok := x.numbers[string(name)]; ok {
		x.found = append(x.found, n)
	}
}

// matches reports whether one of the given targets is the value or above it.
func (x *targetIndex) matches(targets []uint32, value []byte) bool {
	if len(targets) > 8 {
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
	return n == len(value) || (value[n] == '/' || target == "/") && climbs(value)
}

// climbs reports whether the directories above a value can be read off it. A ".."
// that stayed in a lexical path may lead anywhere.
func climbs(value []byte) bool {
	for rest := value; ; {
		i := bytes.Index(rest, []byte("/.."))
		if i < 0 {
			return true
		}
		if rest = rest[i+3:]; len(rest) == 0 || rest[0] == '/' {
			return false
		}
	}
}

func (x *targetIndex) watched(n uint32) *watch {
	t := &x.targets[n]
	if t.watch == nil {
		t.watch = &watch{denied: math.MaxUint64}
	}
	return t.watch
}

// excuse notes the windows of allowed calls at their targets, and the denials.
func (x *targetIndex) excuse(p *policyLog) (anyDenied bool) {
	for _, d := range p.decisions {
		if d.timed && d.denied() {
			anyDenied = true
			for _, n := range d.targets {
				w := x.watched(n)
				w.denied = min(w.denied, d.end)
			}
		}
	}
	if !anyDenied {
		return false
	}
	for _, d := range p.decisions {
		if d.timed && d.allowed() {
			for _, n := range d.targets {
				w := x.watched(n)
				w.excuses = append(w.excuses, excuse{d.session, d.start, d.until()})
			}
		}
	}
	for i := range x.targets {
		t := x.targets[i].watch
		if t == nil {
			continue
		}
		slices.SortFunc(t.excuses, func(a, b excuse) int {
			return cmp.Or(cmp.Compare(a.session.number, b.session.number), cmp.Compare(a.start, b.start))
		})
		t.excuses = slices.Clip(mergeExcuses(t.excuses))
	}
	return true
}

func mergeExcuses(list []excuse) []excuse {
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
func (t *watch) by(s *session, ktime uint64) bool {
	i, _ := slices.BinarySearchFunc(t.excuses, excuse{s, ktime, 0}, func(a, b excuse) int {
		return cmp.Or(cmp.Compare(a.session.number, b.session.number), cmp.Compare(a.start, b.start))
	})
	// i is the first that begins at the time or later.
	for _, i := range [2]int{i - 1, i} {
		if i >= 0 && i < len(t.excuses) && t.excuses[i].session == s && t.excuses[i].start <= ktime && ktime <= t.excuses[i].end {
			return true
		}
	}
	return false
}
