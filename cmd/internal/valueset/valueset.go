// Package valueset collects the values of the capability surface as sorted,
// distinct sets, however many there are: what does not fit in some 20 MiB of
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
	arenaSize = 12 << 20 // bytes of entries
	tableSize = 1 << 19  // slots, a power of two
	tableFull = tableSize / 10 * 7

	// Of a small set. The memory of a large one, taken at once, brings the collector to a run that has next to nothing to collect.
	smallArena = 64 << 10
	smallTable = 1 << 12
)

// Set is a set of keys in memory, and sorted runs of keys on disk. A key is the
// index of a surface set and the value's bytes, so byte order of keys is document
// order of sets and then of values. Not safe for concurrent use.
//
// Most values are names of files, and many are in one directory. So a key in memory is two
// parts: its front, up to the last slash, which is there once, and its base.
type Set struct {
	arena  []byte // entries: front (4 bytes), length of the base (4 bytes), base, up to 3 bytes of nothing
	fronts fronts
	// A slot of table holds the place of an entry in arena, counted in steps of
	// entryAlign and from 1, and above placeBits a part of the key's hash, so that
	// hardly ever another key must be looked at. 0 is free.
	table   []uint32
	entries []uint32 // places of all entries, from 0
	items   []item   // the same while they are sorted
	limit   int      // bytes of arena to use
	seed    maphash.Seed
	runs    runs
	room    []byte // the key that walk gave last
	walked  uint32 // its front
	touched byte   // keeps touch from being nothing to the compiler
}

const (
	entryAlign = 4
	entryHead  = 8
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
	if err := s.make(1, len(value)); err != nil {
		return err
	}
	s.add(s.find(set, value))
	return nil
}

// found is the key of a value in its two parts, and its hash.
type found struct {
	front uint32
	base  []byte
	hash  uint64
}

// find is the key of a value. Its front is there afterwards.
func (s *Set) find(set int, value []byte) found {
	slash := bytes.LastIndexByte(value, '/') + 1
	front, base := s.fronts.add(s.seed, set, value[:slash]), value[slash:]
	return found{front, base, s.hash(front, base)}
}

// spare are closed sets, whose memory the next one takes. Their tables are empty.
var spare sync.Pool

// allocate takes the memory of a small set, or that of a closed one.
func (s *Set) allocate() {
	if s.table != nil {
		return
	}
	if old, ok := spare.Get().(*Set); ok && cap(old.arena) >= s.limit {
		s.table, s.arena, s.entries, s.items, s.fronts = old.table, old.arena[:0:s.limit], old.entries[:0], old.items[:tableFull], old.fronts
		return
	}
	s.take(smallTable, smallArena)
	s.fronts.allocate()
}

// take takes memory for a table with so many slots, and for so many bytes of entries.
func (s *Set) take(slots, arena int) {
	s.table = make([]uint32, slots)
	s.arena = append(make([]byte, 0, min(arena, s.limit)), s.arena...)
	s.entries = append(make([]uint32, 0, full(slots)), s.entries...)
	s.items = make([]item, full(slots))
}

// full is how many values a table holds at most.
func full(slots int) int { return slots / 10 * 7 }

// grow makes a small set a large one: all at once, so that nothing half-grown is left to the collector.
func (s *Set) grow() {
	s.take(tableSize, arenaSize)
	for _, place := range s.entries {
		s.enter(place, s.hash(s.entry(place)))
	}
}

// make makes room for n values of so many bytes in all: if there is none, what is in memory goes to disk.
func (s *Set) make(n, size int) error {
	s.allocate()
	more := size + n*(entryHead+entryAlign-1)
	if len(s.entries) > 0 && (len(s.arena)+more > s.limit || len(s.entries)+n > tableFull || !s.fronts.have(n, size)) {
		if err := s.spill(); err != nil {
			return err
		}
	}
	if len(s.table) < tableSize && (len(s.arena)+more > cap(s.arena) || len(s.entries)+n > full(len(s.table))) {
		s.grow()
	}
	return nil
}

func (s *Set) hash(front uint32, base []byte) uint64 {
	return maphash.Bytes(s.seed, base) + uint64(front+1)*0x9e3779b97f4a7c15
}

func (s *Set) add(f found) {
	slot, tag := s.slot(f.hash), uint32(f.hash>>32)&^placeMask
	for s.table[slot] != 0 {
		if at := s.table[slot]; at&^placeMask == tag {
			if front, base := s.entry(at&placeMask - 1); front == f.front && bytes.Equal(base, f.base) {
				return
			}
		}
		slot = s.slot(slot + 1)
	}
	place := uint32(len(s.arena) / entryAlign)
	s.table[slot] = place + 1 | tag
	s.entries = append(s.entries, place)
	s.arena = binary.LittleEndian.AppendUint32(s.arena, f.front)
	s.arena = binary.LittleEndian.AppendUint32(s.arena, uint32(len(f.base)))
	s.arena = append(s.arena, f.base...)
	for len(s.arena)%entryAlign != 0 {
		s.arena = append(s.arena, 0)
	}
}

// slot is the place in the table for a hash.
func (s *Set) slot(hash uint64) uint64 { return hash & uint64(len(s.table)-1) }

// enter gives an entry that has none a slot.
func (s *Set) enter(place uint32, hash uint64) {
	slot := s.slot(hash)
	for s.table[slot] != 0 {
		slot = s.slot(slot + 1)
	}
	s.table[slot] = place + 1 | uint32(hash>>32)&^placeMask
}

// entry is the key of an entry in its two parts.
func (s *Set) entry(place uint32) (front uint32, base []byte) {
	at := s.arena[place*entryAlign:]
	return binary.LittleEndian.Uint32(at), at[entryHead : entryHead+binary.LittleEndian.Uint32(at[4:])]
}

func (s *Set) base(place uint32) []byte {
	_, base := s.entry(place)
	return base
}

// walk is the key of the entry at a place in their order, until the next call, and how many of its bytes are those of the key
// before it, at least. Entries that follow each other can be far apart in memory, so the next ones are fetched before they are needed.
func (s *Set) walk(i int) (key []byte, like int) {
	if i%together == 0 {
		for _, place := range s.entries[min(i+together, len(s.entries)):min(i+2*together, len(s.entries))] {
			s.touched += s.arena[place*entryAlign]
		}
	}
	front, base := s.entry(s.entries[i])
	if i > 0 && front == s.walked {
		like = len(s.fronts.bytes(front))
	} else {
		s.room, s.walked = append(s.room[:0], s.fronts.bytes(front)...), front
	}
	s.room = append(s.room[:len(s.fronts.bytes(front))], base...)
	return s.room, like
}

// spill moves everything in memory to a sorted run on disk.
func (s *Set) spill() error {
	s.sort()
	err := s.runs.add(func(put func(key []byte, like int) error) error {
		for i := range s.entries {
			if err := put(s.walk(i)); err != nil {
				return err
			}
		}
		return nil
	})
	s.entries, s.arena = s.entries[:0], s.arena[:0]
	clear(s.table)
	s.fronts.empty()
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
	if len(s.table) < tableSize {
		*s = Set{}
		return
	}
	s.empty()
	s.fronts.empty()
	spare.Put(&Set{table: s.table, arena: s.arena, entries: s.entries, items: s.items, fronts: s.fronts})
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
		slot := s.slot(s.hash(s.entry(place)))
		for s.table[slot]&placeMask != place+1 {
			slot = s.slot(slot + 1)
		}
		slots = append(slots, slot)
	}
	for _, slot := range slots {
		s.table[slot] = 0
	}
}
