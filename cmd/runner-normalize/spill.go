package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// arenaSize is how many bytes of lines are kept in memory before they are spilled.
const arenaSize = 8 << 20

// store keeps the lines of every task until their order is known: first under the
// task, then under its place. What does not fit into memory goes to a nameless file in
// runs: the lines of one arena, task by task, then an index that says where those of
// each task begin.
type store struct {
	arena []byte
	limit int
	spans []span
	spare []span
	file  *os.File
	off   int64 // length of file
	runs  []spilled
	lines uint64 // how many of the pieces are lines
}

// spilled is one spilled arena.
type spilled struct {
	data    int64 // where its lines begin
	lineEnd int64 // where they end and its spans begin
	spans   uint32
}

const (
	spanSize = 12
	minPiece = 24 // mean size of pieces down to which the arena may be filled
)

func newStore(limit int) *store { return &store{limit: limit} }

// keep keeps one packed piece under a key.
func (s *store) keep(key uint32, packed []byte) error {
	if n := len(s.spans); n > 0 && s.spans[n-1].key == key {
		s.spans[n-1].n += uint32(len(packed))
	} else {
		s.spans = append(s.spans, span{key, uint32(len(s.arena)), uint32(len(packed))})
	}
	if cap(s.arena)-len(s.arena) < len(packed) {
		s.grow(len(packed))
	}
	s.arena = append(s.arena, packed...)
	// Spans cost memory too, where pieces are short and tasks take turns.
	if len(s.arena) >= s.limit || len(s.spans) >= max(s.limit/minPiece, 1) {
		return s.spill()
	}
	return nil
}

// grow makes room for n bytes: little for a small run, and then all at once, so
// that no half-grown arenas are left to the collector.
func (s *store) grow(n int) {
	size := 256 << 10
	if len(s.arena) > 0 {
		size = s.limit + s.limit/4
	}
	arena := make([]byte, len(s.arena), max(size, len(s.arena)+n))
	copy(arena, s.arena)
	s.arena = arena
}

// sort puts the spans in the order of their keys.
func (s *store) sort() {
	if cap(s.spare) < len(s.spans) {
		s.spare = make([]span, cap(s.spans))
	}
	s.spans, s.spare = sortSpans(s.spans, s.spare[:len(s.spans)])
}

// spill writes the arena as one run and empties it.
func (s *store) spill() error {
	if s.file == nil {
		f, err := tool.Spool()
		if err != nil {
			return spoolError(err)
		}
		s.file = f
	}
	s.sort()
	r := spilled{data: s.off}
	w := bufio.NewWriterSize(s.file, 128<<10)
	at := uint32(0)
	index := s.spare[:0] // its content is not needed any more
	for _, p := range s.spans {
		w.Write(s.arena[p.off : p.off+p.n])
		if n := len(index); n > 0 && index[n-1].key == p.key {
			index[n-1].n += p.n
		} else {
			index = append(index, span{p.key, at, p.n})
		}
		at += p.n
	}
	r.lineEnd = r.data + int64(at)
	r.spans = uint32(len(index))
	var b []byte
	for _, p := range index {
		b = appendSpan(b[:0], p)
		w.Write(b)
	}
	if err := w.Flush(); err != nil {
		return spoolError(err)
	}
	s.off = r.lineEnd + int64(r.spans)*spanSize
	s.runs = append(s.runs, r)
	s.arena, s.spans = s.arena[:0], s.spans[:0]
	return nil
}

func appendSpan(b []byte, p span) []byte {
	b = binary.LittleEndian.AppendUint32(b, p.key)
	b = binary.LittleEndian.AppendUint32(b, p.off)
	return binary.LittleEndian.AppendUint32(b, p.n)
}

func decodeSpan(b []byte) span {
	return span{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])}
}

func spoolError(err error) error {
	return fmt.Errorf("spooling: %w", tool.ScratchError(err))
}

// rekey replaces tasks by their places, everywhere, and sorts by those.
func (s *store) rekey(place func(task uint32) uint32) error {
	if len(s.runs) > 0 && len(s.spans) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	for i := range s.spans {
		s.spans[i].key = place(s.spans[i].key)
	}
	s.sort()
	var b []byte
	for _, r := range s.runs {
		size := int(r.spans) * spanSize
		if cap(b) < size {
			b = make([]byte, size+size/4)
		}
		b = b[:size]
		if _, err := s.file.ReadAt(b, r.lineEnd); err != nil {
			return spoolError(err)
		}
		s.spans = s.spans[:0]
		for at := 0; at < size; at += spanSize {
			p := decodeSpan(b[at:])
			p.key = place(p.key)
			s.spans = append(s.spans, p)
		}
		s.sort()
		b = b[:0]
		for _, p := range s.spans {
			b = appendSpan(b, p)
		}
		if _, err := s.file.WriteAt(b, r.lineEnd); err != nil {
			return spoolError(err)
		}
	}
	if len(s.runs) > 0 {
		s.spans = s.spans[:0]
	}
	return nil
}

func (s *store) close() {
	if s.file != nil {
		s.file.Close()
	}
}
