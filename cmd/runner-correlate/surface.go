package main

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// Sizes of the in-memory set. What does not fit is spilled to disk, so that the
// number of distinct values is bounded by the disk alone.
const (
	arenaSize = 4 << 20 // bytes of keys
	tableSize = 1 << 16 // slots, a power of two
	tableFull = tableSize / 10 * 7
)

// surface collects the values of the capability surface: a set of keys in memory,
// and sorted runs of keys on disk. A key is the index of the set and the value's
// bytes, so byte order of keys is document order of sets and then of values.
type surface struct {
	arena   []byte   // entries: length of the key (4 bytes), key
	table   []uint32 // offset into arena plus 1; 0 is free
	entries []uint32 // offsets of all entries
	limit   int      // bytes of arena to use
	seed    maphash.Seed
	runs    runs
}

func newSurface() *surface {
	return &surface{arena: make([]byte, 0, arenaSize), table: make([]uint32, tableSize), limit: arenaSize,
		entries: make([]uint32, 0, tableFull), seed: maphash.MakeSeed()}
}

// Add puts a value into a set. Null and empty values are no capability.
func (s *surface) Add(set int, value []byte) error {
	if set < 0 || len(value) == 0 {
		return nil
	}
	slot := (maphash.Bytes(s.seed, value) + uint64(set)*0x9e3779b97f4a7c15) & (tableSize - 1)
	for s.table[slot] != 0 {
		key := s.key(s.table[slot] - 1)
		if int(key[0]) == set && bytes.Equal(key[1:], value) {
			return nil
		}
		slot = (slot + 1) & (tableSize - 1)
	}
	need := 4 + 1 + len(value)
	if len(s.entries) > 0 && (len(s.arena)+need > s.limit || len(s.entries) == tableFull) {
		if err := s.spill(); err != nil {
			return err
		}
		return s.Add(set, value)
	}
	s.table[slot] = uint32(len(s.arena)) + 1
	s.entries = append(s.entries, uint32(len(s.arena)))
	s.arena = binary.LittleEndian.AppendUint32(s.arena, uint32(1+len(value)))
	s.arena = append(s.arena, byte(set))
	s.arena = append(s.arena, value...)
	return nil
}

func (s *surface) key(offset uint32) []byte {
	n := binary.LittleEndian.Uint32(s.arena[offset:])
	return s.arena[offset+4 : offset+4+n]
}

func (s *surface) sort() {
	slices.SortFunc(s.entries, func(a, b uint32) int { return bytes.Compare(s.key(a), s.key(b)) })
}

// spill moves everything in memory to a sorted run on disk.
func (s *surface) spill() error {
	s.sort()
	err := s.runs.add(func(put func(key []byte) error) error {
		for _, e := range s.entries {
			if err := put(s.key(e)); err != nil {
				return err
			}
		}
		return nil
	})
	s.entries, s.arena = s.entries[:0], s.arena[:0]
	clear(s.table)
	return err
}

// Each calls f once for every distinct value, sets in document order and values
// in byte order. value is valid during the call. The surface is spent afterwards.
func (s *surface) Each(f func(set int, value []byte) error) error {
	if len(s.runs.list) == 0 {
		s.sort()
		for _, e := range s.entries {
			key := s.key(e)
			if err := f(int(key[0]), key[1:]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.spill(); err != nil {
		return err
	}
	return s.runs.each(func(key []byte) error { return f(int(key[0]), key[1:]) })
}

// Close releases the scratch files.
func (s *surface) Close() { s.runs.close() }
