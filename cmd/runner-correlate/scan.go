package main

import (
	"bytes"
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

const timeKey = `,"ktime_ns":`

// cutTime takes the time off a kernel line's end. What is left lacks its brace.
func cutTime(line []byte) (head []byte, ktime uint64, ok bool) {
	n := len(line) - 1
	i := n
	for i > 0 && n-i <= 20 && line[i-1]-'0' <= 9 {
		i--
	}
	if n < 0 || line[n] != '}' || !bytes.HasSuffix(line[:i], []byte(timeKey)) {
		return line, 0, false
	}
	v, _, ok := decimal(line[i:n])
	return line[:i-len(timeKey)], v, ok
}
