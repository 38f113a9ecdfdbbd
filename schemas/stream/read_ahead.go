package stream

import (
	"hash"
	"io"
	"sync"
)

// aheadBuffers are the blocks in use at once: one is filled, one parsed, one
// digested, and one is spare.
const aheadBuffers = 4

// readAhead is a source that reads ahead of its consumer in one goroutine and digests the
// consumed bytes in another. Blocks and errors are the same as those of direct, because
// both use fill. An error comes after the bytes before it.
type readAhead struct {
	free   chan []byte // to be filled
	full   chan piece
	parsed chan span // to be digested
	done   chan struct{}
	result chan []byte // the digest
	last   []byte      // the buffer of the last block
	whole  int         // length of the block in it
	end    error       // what followed the last block
	once   sync.Once
}

// piece is a result of reading: whole lines, or an error and the rest.
type piece struct {
	buf []byte
	n   int
	err error
}

// span is the part of a buffer that counts for the digest.
type span struct {
	buf  []byte
	n    int
	last bool
}

// newReadAhead reads at most atOnce bytes at once.
func newReadAhead(r io.Reader, atOnce int) *readAhead {
	a := &readAhead{free: make(chan []byte, aheadBuffers), full: make(chan piece, aheadBuffers+1),
		parsed: make(chan span, aheadBuffers), done: make(chan struct{}), result: make(chan []byte, 1)}
	for range aheadBuffers {
		a.free <- nil // made when it is needed: a short stream needs only one
	}
	go a.read(r, atOnce)
	return a
}

func (a *readAhead) read(r io.Reader, atOnce int) {
	buf, n, ok := a.buffer(nil)
	for ok {
		filled, whole, err := fill(r, buf, n, atOnce)
		lines, rest := piece{buf: buf, n: whole}, piece{buf: buf[whole:], n: filled - whole, err: err}
		if whole > 0 {
			if err == nil {
				// The incomplete last line is copied before the buffer is passed on.
				buf, n, ok = a.buffer(buf[whole:filled])
			}
			a.full <- lines
		}
		if err != nil {
			a.full <- rest
			return
		}
	}
}

// buffer waits for a free buffer and copies the first bytes into it. It returns false if
// the consumer needs no more blocks.
func (a *readAhead) buffer(with []byte) (buf []byte, n int, ok bool) {
	select {
	case buf = <-a.free:
	case <-a.done:
		return nil, 0, false
	}
	if buf == nil {
		buf = make([]byte, MaxLine+readSize)
	}
	return buf, copy(buf, with), true
}

func (a *readAhead) digest(h hash.Hash) { go a.hash(h) }

func (a *readAhead) hash(h hash.Hash) {
	for s := range a.parsed {
		h.Write(s.buf[:s.n])
		if s.last {
			a.result <- h.Sum(nil)
			return
		}
		a.free <- s.buf
	}
}

func (a *readAhead) next() ([]byte, error) {
	if a.end != nil {
		return nil, a.end
	}
	if a.last != nil {
		a.parsed <- span{buf: a.last, n: a.whole}
	}
	p := <-a.full
	a.last, a.whole, a.end = p.buf, p.n, p.err
	return p.buf[:p.n], p.err
}

func (a *readAhead) sum(n int) []byte {
	a.parsed <- span{buf: a.last, n: n, last: true}
	a.last = nil
	return <-a.result
}

func (a *readAhead) close() {
	a.once.Do(func() {
		close(a.done)
		close(a.parsed)
	})
}
