package main

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// chunkSize is how much the reader gathers before it hands lines on.
const chunkSize = 128 << 10

// memoryChunks is how many chunks wait in memory before the disk is used.
const memoryChunks = 16

// chunk is whole lines, n of them.
type chunk struct {
	b []byte
	n int
}

// queued is a chunk that waits. In the file it has a size there and no bytes.
type queued struct {
	chunk
	size   int
	packed bool // compressed in the file
}

// spool is a first-in-first-out queue of chunks between the reader of the ring,
// which must never wait, and the writer, which a slow next stage can stop. What
// does not fit in memory goes, compressed, to a nameless file of bounded size; when that is
// full too, put waits, the ring fills, and the kernel counts what is lost.
type spool struct {
	mu     sync.Mutex
	change sync.Cond
	queue  []queued
	onDisk int // how many of queue are in the file: always the last ones
	file   *os.File
	rd, wr int64 // of the file
	limit  int64
	closed bool
	err    error
	free   chan []byte // buffers for use again
	packed []byte      // for use again

	// Spooled is how many bytes of lines went through the file.
	Spooled uint64
}

func newSpool(limit int64) *spool {
	s := &spool{limit: limit, free: make(chan []byte, memoryChunks)}
	s.change.L = &s.mu
	return s
}

// buffer returns an empty buffer of chunkSize capacity.
func (s *spool) buffer() []byte {
	select {
	case b := <-s.free:
		return b[:0]
	default:
		return make([]byte, 0, chunkSize+64<<10)
	}
}

// release takes back a buffer.
func (s *spool) release(b []byte) {
	if cap(b) < chunkSize {
		return
	}
	select {
	case s.free <- b:
	default:
	}
}

// put appends a chunk and takes over its buffer. After a failure on the other
// side it returns that failure.
func (s *spool) put(c chunk) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.err != nil {
			return s.err
		}
		if s.onDisk == 0 && len(s.queue) < memoryChunks {
			s.add(queued{chunk: c})
			return nil
		}
		if stored := s.pack(c.b); s.wr+int64(len(stored)) <= s.limit {
			if err := s.toFile(c, stored); err == nil {
				return nil
			}
			// No room or no file: what is spooled stays, the rest waits its turn, and
			// the kernel counts what it must drop meanwhile.
			s.limit = s.wr
			continue
		}
		s.change.Wait()
	}
}

func (s *spool) add(q queued) {
	s.queue = append(s.queue, q)
	s.change.Broadcast()
}

// pack compresses lines, which takes less time than to write them as they are. Bytes that do not get fewer stay.
func (s *spool) pack(b []byte) []byte {
	if n := s2.MaxEncodedLen(len(b)); cap(s.packed) < n {
		s.packed = make([]byte, n)
	}
	if p := s2.Encode(s.packed[:cap(s.packed)], b); len(p) < len(b) {
		return p
	}
	return b
}

func (s *spool) toFile(c chunk, stored []byte) error {
	if s.file == nil {
		f, err := tool.Spool()
		if err != nil {
			return fmt.Errorf("opening the spool: %w", err)
		}
		s.file = f
	}
	if _, err := s.file.WriteAt(stored, s.wr); err != nil {
		return fmt.Errorf("spooling: %w", err)
	}
	s.wr += int64(len(stored))
	s.Spooled += uint64(len(c.b))
	s.onDisk++
	s.add(queued{chunk: chunk{n: c.n}, size: len(stored), packed: len(stored) < len(c.b)})
	s.release(c.b)
	return nil
}

// get returns the next chunk; io.EOF after finish and the last one. release gives
// its buffer back.
func (s *spool) get() (chunk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.err != nil:
			return chunk{}, s.err
		case len(s.queue) > 0:
			return s.take()
		case s.closed:
			return chunk{}, io.EOF
		}
		s.change.Wait()
	}
}

func (s *spool) take() (chunk, error) {
	q := s.queue[0]
	if len(s.queue) == s.onDisk {
		if err := s.fromFile(&q); err != nil {
			return chunk{}, err
		}
	}
	s.queue[0] = queued{} // the array lives on: its first element must not hold the bytes
	s.queue = s.queue[1:]
	s.change.Broadcast()
	return q.chunk, nil
}

func (s *spool) fromFile(q *queued) error {
	q.b = make([]byte, q.size)
	if _, err := s.file.ReadAt(q.b, s.rd); err != nil {
		return fmt.Errorf("reading the spool: %w", err)
	}
	if q.packed {
		b, err := s2.Decode(s.buffer(), q.b)
		if err != nil {
			return fmt.Errorf("reading the spool: %w", err)
		}
		q.b = b
	}
	s.rd += int64(q.size)
	if s.onDisk--; s.onDisk > 0 {
		return nil
	}
	s.rd, s.wr = 0, 0
	return s.file.Truncate(0)
}

// idle reports whether nothing waits.
func (s *spool) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) == 0
}

// finish says that no chunk follows.
func (s *spool) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.change.Broadcast()
}

// fail makes both sides return err.
func (s *spool) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.change.Broadcast()
}
