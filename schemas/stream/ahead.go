package stream

import (
	"crypto/sha256"
	"io"
	"sync"
)

// aheadBuffers are the blocks that are under way at once: being filled, being
// parsed, being digested, and one to spare.
const aheadBuffers = 4

// ahead is a source that reads ahead of its consumer and digests behind it, each in
// a goroutine of its own. The blocks and the errors are those of direct, because
// both come from fill and errors travel behind the bytes that they follow.
type ahead struct {
	free   chan []byte // to be filled
	full   chan piece
	parsed chan span // to be digested
	done   chan struct{}
	digest chan []byte
	last   []byte // the buffer of the last block
	whole  int    // of it, the block
	end    error  // what stood behind the last block
	once   sync.Once
}

// piece is what reading has given: whole lines, or with an error the rest.
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

// newAhead reads at most atOnce bytes at once.
func newAhead(r io.Reader, atOnce int) *ahead {
	a := &ahead{free: make(chan []byte, aheadBuffers), full: make(chan piece, aheadBuffers+1),
		parsed: make(chan span, aheadBuffers), done: make(chan struct{}), digest: make(chan []byte, 1)}
	for range aheadBuffers {
		a.free <- nil // made when it is needed: a short stream needs only one
	}
	go a.read(r, atOnce)
	go a.hash()
	return a
}

func (a *ahead) read(r io.Reader, atOnce int) {
	buf, n, ok := a.buffer(nil)
	for ok {
		filled, whole, err := fill(r, buf, n, atOnce)
		lines, rest := piece{buf: buf, n: whole}, piece{buf: buf[whole:], n: filled - whole, err: err}
		if whole > 0 {
			if err == nil {
				// The line that has only begun moves on before the buffer is handed over.
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

// buffer waits for a free buffer and puts into it what it begins with. It is false
// when nobody waits for blocks any more.
func (a *ahead) buffer(with []byte) (buf []byte, n int, ok bool) {
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

func (a *ahead) hash() {
	h := sha256.New()
	for s := range a.parsed {
		h.Write(s.buf[:s.n])
		if s.last {
			a.digest <- h.Sum(nil)
			return
		}
		a.free <- s.buf
	}
}

func (a *ahead) next() ([]byte, error) {
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

func (a *ahead) sum(n int) []byte {
	a.parsed <- span{buf: a.last, n: n, last: true}
	a.last = nil
	return <-a.digest
}

func (a *ahead) close() {
	a.once.Do(func() {
		close(a.done)
		close(a.parsed)
	})
}
