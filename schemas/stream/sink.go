package stream

import (
	"crypto/sha256"
	"hash"
	"io"
)

// sink digests and writes the bytes of a Writer.
type sink interface {
	// put takes a full buffer and gives an empty one. After an error put is not
	// called again.
	put(buf []byte) ([]byte, error)
	// wait returns when everything put is wrote, or could not be.
	wait() error
	// sum is the digest of everything put. It is called behind wait.
	sum() []byte
	// close ends what put has begun, as wait does; it may be called more than once.
	close() error
}

// directSink works when it is asked.
type directSink struct {
	w io.Writer
	h hash.Hash
}

func (d *directSink) put(buf []byte) ([]byte, error) {
	d.h.Write(buf)
	_, err := d.w.Write(buf)
	return buf[:0], err
}

func (d *directSink) wait() error  { return nil }
func (d *directSink) sum() []byte  { return d.h.Sum(nil) }
func (d *directSink) close() error { return nil }

// behindBuffers are the buffers of a behind sink: one is being filled by the
// Writer, one digested and wrote, and one waits in between.
const behindBuffers = 3

// behind is a sink that works in a goroutine of its own.
type behind struct {
	to     directSink
	given  chan []byte
	back   chan wrote
	under  int // buffers given and not back yet
	spare  [][]byte
	err    error // the first
	closed bool
}

// wrote is a buffer that comes back, and what became of its bytes.
type wrote struct {
	buf []byte
	err error
}

func newBehind(w io.Writer) *behind {
	b := &behind{to: directSink{w: w, h: sha256.New()},
		given: make(chan []byte, behindBuffers), back: make(chan wrote, behindBuffers)}
	go b.work()
	return b
}

// work writes what is given. After a failure it writes no more, but goes on giving
// buffers back, so that nobody waits for one in vain.
func (b *behind) work() {
	var err error
	for buf := range b.given {
		if err == nil {
			buf, err = b.to.put(buf)
		}
		b.back <- wrote{buf[:0], err}
	}
	close(b.back)
}

func (b *behind) put(buf []byte) ([]byte, error) {
	b.given <- buf
	if b.under++; b.under == behindBuffers {
		b.take()
	}
	if n := len(b.spare); n > 0 {
		buf, b.spare = b.spare[n-1], b.spare[:n-1]
		return buf, b.err
	}
	return make([]byte, 0, bufferSize), b.err
}

func (b *behind) take() {
	w := <-b.back
	b.under--
	b.spare = append(b.spare, w.buf)
	if b.err == nil {
		b.err = w.err
	}
}

func (b *behind) wait() error {
	for b.under > 0 {
		b.take()
	}
	return b.err
}

func (b *behind) sum() []byte { return b.to.sum() }

func (b *behind) close() error {
	if !b.closed {
		b.closed = true
		close(b.given)
	}
	return b.wait()
}
