// Package valueset collects the values of the capability surface as sorted,
// distinct sets, however many there are: what does not fit in some 30 MiB of
// memory goes to scratch files.
package valueset

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"sync"
)

// Sizes of the part in memory.
const (
	arenaSize = 16 << 20 // bytes of keys
	tableSize = 1 << 19  // slots, a power of two
	tableFull = tableSize / 10 * 7
)

// Set is a set of keys in memory, and sorted runs of keys on disk. A key is the
// index of a surface set and the value's bytes, so byte order of keys is document
// order of sets and then of values. Not safe for concurrent use.
type Set struct {
	arena []byte // entries: length of the key (4 bytes), key, up to 3 bytes of nothing
	// A slot of table holds the place of an entry in arena, counted in steps of
	// entryAlign and from 1, and above placeBits a part of the value's hash, so that
	// hardly ever another key must be looked at. 0 is free.
	table   []uint32
	entries []uint32 // places of all entries, from 0
	items   []item   // the same while they are sorted
	limit   int      // bytes of arena to use
	seed    maphash.Seed
	runs    runs
	touched byte // keeps touch from being nothing to the compiler
}

const (
	entryAlign = 4
	placeBits  = 24
	placeMask  = 1<<placeBits - 1
	cacheLine  = 64
)

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
	s.allocate()
	return s.add(set, value, s.hash(set, value))
}

// spare are closed sets, whose memory the next one takes. Their tables are empty.
var spare sync.Pool

// allocate takes the memory all at once: what is not used is not there, but what a
// slice grows out of is.
func (s *Set) allocate() {
	if s.table == nil {
		if old, ok := spare.Get().(*Set); ok && cap(old.arena) >= s.limit {
			s.table, s.arena, s.entries, s.items = old.table, old.arena[:0:s.limit], old.entries[:0], old.items[:tableFull]
			return
		}
		s.table = make([]uint32, tableSize)
		s.arena = make([]byte, 0, s.limit)
		s.entries = make([]uint32, 0, tableFull)
		s.items = make([]item, tableFull)
	}
}

func (s *Set) hash(set int, value []byte) uint64 {
	return maphash.Bytes(s.seed, value) + uint64(set)*0x9e3779b97f4a7c15
}

func (s *Set) add(set int, value []byte, hash uint64) error {
	slot, tag := hash&(tableSize-1), uint32(hash>>32)&^placeMask
	for s.table[slot] != 0 {
		if at := s.table[slot]; at&^placeMask == tag {
			key := s.key(at&placeMask - 1)
			if int(key[0]) == set && bytes.Equal(key[1:], value) {
				return nil
			}
		}
		slot = (slot + 1) & (tableSize - 1)
	}
	need := 4 + 1 + len(value) + entryAlign - 1
	if len(s.entries) > 0 && (len(s.arena)+need > s.limit || len(s.entries) == tableFull) {
		if err := s.spill(); err != nil {
			return err
		}
		return s.add(set, value, hash)
	}
	place := uint32(len(s.arena) / entryAlign)
	s.table[slot] = place + 1 | tag
	s.entries = append(s.entries, place)
	s.arena = binary.LittleEndian.AppendUint32(s.arena, uint32(1+len(value)))
	s.arena = append(s.arena, byte(set))
	s.arena = append(s.arena, value...)
	for len(s.arena)%entryAlign != 0 {
		s.arena = append(s.arena, 0)
	}
	return nil
}

func (s *Set) key(place uint32) []byte {
	at := s.arena[place*entryAlign:]
	return at[4 : 4+binary.LittleEndian.Uint32(at)]
}

// walk is the key of the entry at a place in their order. Keys that follow each other are far apart in memory, so those of the next
// entries are fetched before they are needed.
func (s *Set) walk(i int) []byte {
	if i%together == 0 {
		for _, place := range s.entries[min(i+together, len(s.entries)):min(i+2*together, len(s.entries))] {
			at := int(place * entryAlign)
			s.touched += s.arena[at] + s.arena[min(at+cacheLine, len(s.arena)-1)]
		}
	}
	return s.key(s.entries[i])
}

func (s *Set) sort() {
	s.items = s.items[:len(s.entries)]
	for i, e := range s.entries {
		s.items[i].entry = e
	}
	s.sortItems(s.items, 0)
	for i, x := range s.items {
		s.entries[i] = x.entry
	}
}

// spill moves everything in memory to a sorted run on disk.
func (s *Set) spill() error {
	s.sort()
	err := s.runs.add(func(put func(key []byte) error) error {
		for i := range s.entries {
			if err := put(s.walk(i)); err != nil {
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
	s.sort()
	return s.runs.each(s, func(key []byte) error { return f(int(key[0]), key[1:]) })
}

// Close releases the scratch files.
func (s *Set) Close() {
	s.runs.close()
	if s.table == nil {
		return
	}
	s.empty()
	spare.Put(&Set{table: s.table, arena: s.arena, entries: s.entries, items: s.items})
	*s = Set{}
}

// empty makes all slots of the table free. Of few entries it looks for the slots: to clear the
// whole table takes longer.
func (s *Set) empty() {
	if len(s.entries) > tableSize/256 {
		clear(s.table)
		return
	}
	slots := make([]uint64, 0, len(s.entries))
	for _, place := range s.entries {
		key := s.key(place)
		slot := s.hash(int(key[0]), key[1:]) & (tableSize - 1)
		for s.table[slot]&placeMask != place+1 {
			slot = (slot + 1) & (tableSize - 1)
		}
		slots = append(slots, slot)
	}
	for _, slot := range slots {
		s.table[slot] = 0
	}
}
