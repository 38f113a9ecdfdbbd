package main

import (
	"math"
)

// scan reads text of a fixed form.
type scan struct {
	rest []byte
	bad  bool
}

func (s *scan) has(text string) bool {
	if len(s.rest) < len(text) || string(s.rest[:len(text)]) != text {
		return false
	}
	s.rest = s.rest[len(text):]
	return true
}

func (s *scan) text(text string) { s.bad = !s.has(text) || s.bad }

// uint reads a canonical decimal of at most limit.
func (s *scan) uint(limit uint64) uint64 {
	v, n, ok := decimal(s.rest)
	s.bad = s.bad || !ok || v > limit
	s.rest = s.rest[n:]
	return v
}

// decimal reads the canonical decimal at the start of b and its length.
func decimal(b []byte) (v uint64, n int, ok bool) {
	for n < len(b) && b[n]-'0' <= 9 {
		d := uint64(b[n] - '0')
		if v > math.MaxUint64/10 || v == math.MaxUint64/10 && d > math.MaxUint64%10 {
			return 0, n, false
		}
		v = v*10 + d
		n++
	}
	return v, n, n == 1 || n > 1 && b[0] != '0'
}
