package testkit

import (
	"io"
	"testing"
)

// Endless is a reader that repeats What, which is not empty, and fails a test that reads more than Most bytes and one read of it.
type Endless struct {
	T    *testing.T
	What string
	Most int // bytes
	read int
}

func (e *Endless) Read(p []byte) (int, error) {
	if e.read > e.Most {
		e.T.Errorf("%.20q is read on", e.What)
		return 0, io.EOF
	}
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.What)
	}
	e.read += n
	return n, nil
}
