// Package valueset collects the values of the capability surface as sorted,
// distinct sets, however many there are: what does not fit in some 12 MiB of
// memory goes to scratch files.
package valueset

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// Sizes of the part in memory.
const (
	arenaSize = 8 << 20 // bytes of keys
	tableSize = 1 << 18 // slots, a power of two
	tableFull = tableSize / 10 * 7
)

// Set is a set of keys in memory, and sorted runs of keys on disk. A key is the
// index of a surface set and the value's bytes, so byte order of keys is document
// order of sets and then of values. Not safe for concurrent use.
type Set struct {
	arena   []byte   // entries: length of the key (4 bytes), key
	table   []uint32 // offset into arena plus 1; 0 is free
	entries []uint32 // offsets of all entries
	limit   int      // bytes of arena to use
	seed    maphash.Seed
	runs    runs
}

// New makes an empty set. The caller must Close it.
func New() *Set {
	return &Set{limit: arenaSize, seed: maphash.MakeSeed()}
}

// Add puts a value into the surface set of the given index. A negative index and
// null or empty values are no capability and add nothing.
func (s *Set) Add(set int, value []byte) error {
	if set < 0 || len(value) == 0 {
		return nil
	}
	if s.table == nil {
		s.table = make([]uint32, tableSize)
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

func (s *Set) key(offset uint32) []byte {
	n := binary.LittleEndian.Uint32(s.arena[offset:])
	return s.arena[offset+4 : offset+4+n]
}

func (s *Set) sort() {
	slices.SortFunc(s.entries, func(a, b uint32) int { return bytes.Compare(s.key(a), s.key(b)) })
}

// spill moves everything in memory to a sorted run on disk.
func (s *Set) spill() error {
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
// in byte order. value is valid during the call. The set is spent afterwards.
func (s *Set) Each(f func(set int, value []byte) error) error {
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
func (s *Set) Close() { s.runs.close() }
