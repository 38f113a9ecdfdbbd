package main

import (
	"fmt"
	"io"
	"os"
	"sync"

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

// spool is a first-in-first-out queue of chunks between the reader of the ring,
// which must never wait, and the writer, which a slow stage behind can stop. What
// does not fit in memory goes to a nameless file of bounded size; when that is
// full too, put waits, the ring fills, and the kernel counts what is lost.
type spool struct {
	mu     sync.Mutex
	change sync.Cond
	mem    []chunk
	free   [][]byte
	file   *os.File
	sizes  []chunk // of what lies in the file: b is nil, n lines; len in lens
	lens   []int
	rd, wr int64
	limit  int64
	closed bool
	err    error

	// Spooled is how many bytes went through the file.
	Spooled uint64
}

func newSpool(limit int64) *spool {
	s := &spool{limit: limit}
	s.change.L = &s.mu
	return s
}

// buffer returns an empty buffer of chunkSize capacity.
func (s *spool) buffer() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		return b[:0]
	}
	return make([]byte, 0, chunkSize+64<<10)
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
		if len(s.lens) == 0 && len(s.mem) < memoryChunks {
			s.mem = append(s.mem, c)
			s.change.Broadcast()
			return nil
		}
		if s.wr+int64(len(c.b)) <= s.limit {
			if err := s.toFile(c); err == nil {
				return nil
			}
			// No room or no file: what is spooled stays, the rest waits in line, and
			// the kernel counts what it must drop meanwhile.
			s.limit = s.wr
			continue
		}
		s.change.Wait()
	}
}

func (s *spool) toFile(c chunk) error {
	if s.file == nil {
		f, err := tool.Spool()
		if err != nil {
			return fmt.Errorf("opening the spool: %w", err)
		}
		s.file = f
	}
	if _, err := s.file.WriteAt(c.b, s.wr); err != nil {
		return fmt.Errorf("spooling: %w", err)
	}
	s.wr += int64(len(c.b))
	s.Spooled += uint64(len(c.b))
	s.lens = append(s.lens, len(c.b))
	s.sizes = append(s.sizes, chunk{n: c.n})
	s.free = append(s.free, c.b)
	s.change.Broadcast()
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
		case len(s.mem) > 0: // older than everything in the file
			c := s.mem[0]
			s.mem = s.mem[1:]
			s.change.Broadcast()
			return c, nil
		case len(s.lens) > 0:
			return s.fromFile()
		case s.closed:
			return chunk{}, io.EOF
		}
		s.change.Wait()
	}
}

func (s *spool) fromFile() (chunk, error) {
	n := s.lens[0]
	c := chunk{b: make([]byte, n), n: s.sizes[0].n}
	if _, err := s.file.ReadAt(c.b, s.rd); err != nil {
		return chunk{}, fmt.Errorf("reading the spool: %w", err)
	}
	s.rd += int64(n)
	s.lens, s.sizes = s.lens[1:], s.sizes[1:]
	if len(s.lens) == 0 {
		s.rd, s.wr = 0, 0
		if err := s.file.Truncate(0); err != nil {
			return chunk{}, err
		}
	}
	s.change.Broadcast()
	return c, nil
}

func (s *spool) release(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cap(b) >= chunkSize && len(s.free) < memoryChunks {
		s.free = append(s.free, b)
	}
}

// idle reports whether nothing waits.
func (s *spool) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mem) == 0 && len(s.lens) == 0
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
