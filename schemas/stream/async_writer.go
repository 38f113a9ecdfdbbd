package stream

import (
	"hash"
	"io"
)

// asyncBuffers are the buffers of an asyncWriter: one is filled by the Writer, one
// is digested and written, and one waits in between.
const asyncBuffers = 3

// asyncWriter is a sink that works in its own goroutine.
type asyncWriter struct {
	to       directSink
	given    chan []byte
	back     chan flushed
	inFlight int // buffers that were passed to the goroutine and have not come back
	spare    [][]byte
	err      error // the first
	closed   bool
}

// flushed is a buffer that comes back, with the result of writing its bytes.
type flushed struct {
	buf []byte
	err error
}

func newAsyncWriter(w io.Writer, h hash.Hash) *asyncWriter {
	a := &asyncWriter{to: directSink{w: w, h: h},
		given: make(chan []byte, asyncBuffers), back: make(chan flushed, asyncBuffers)}
	go a.work()
	return a
}

// work writes the buffers that it gets. After a failure it writes no more, but still
// returns the buffers, so that the Writer does not wait forever.
func (a *asyncWriter) work() {
	var err error
	for buf := range a.given {
		if err == nil {
			buf, err = a.to.put(buf)
		}
		a.back <- flushed{buf[:0], err}
	}
	close(a.back)
}

func (a *asyncWriter) put(buf []byte) ([]byte, error) {
	a.given <- buf
	if a.inFlight++; a.inFlight == asyncBuffers {
		a.take()
	}
	if n := len(a.spare); n > 0 {
		buf, a.spare = a.spare[n-1], a.spare[:n-1]
		return buf, a.err
	}
	return make([]byte, 0, bufferSize), a.err
}

func (a *asyncWriter) take() {
	w := <-a.back
	a.inFlight--
	a.spare = append(a.spare, w.buf)
	if a.err == nil {
		a.err = w.err
	}
}

func (a *asyncWriter) wait() error {
	for a.inFlight > 0 {
		a.take()
	}
	return a.err
}

func (a *asyncWriter) sum() []byte { return a.to.sum() }

func (a *asyncWriter) close() error {
	if !a.closed {
		a.closed = true
		close(a.given)
	}
	return a.wait()
}
