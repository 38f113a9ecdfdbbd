package valueset

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// Sizes of the fronts in memory.
const (
	frontBytes = 2 << 20
	frontSlots = 1 << 17 // a power of two
	frontsFull = frontSlots / 2
)

// fronts are the distinct fronts of the keys in memory: the index of a surface set, and a value up to its last slash. Each has a
// number, from 0.
type fronts struct {
	text  []byte   // one after the other
	ends  []uint32 // where each ends in text
	table []uint32 // numbers, from 1; 0 is free
	slots []uint32 // of table that are not free
	last  uint32   // the one that was asked for last
}

func (f *fronts) allocate() {
	f.table = make([]uint32, frontSlots)
}

// have reports whether there is room for n more with so many bytes in all. The first bytes are those of the sets.
func (f *fronts) have(n, size int) bool {
	return len(f.ends)+n <= frontsFull && len(f.text)+n+size <= frontBytes
}

func (f *fronts) bytes(number uint32) []byte {
	from := uint32(0)
	if number > 0 {
		from = f.ends[number-1]
	}
	return f.text[from:f.ends[number]]
}

func (f *fronts) is(number uint32, set int, dir []byte) bool {
	b := f.bytes(number)
	return int(b[0]) == set && bytes.Equal(b[1:], dir)
}

// add is the number of a front, a new one if it is not there.
func (f *fronts) add(seed maphash.Seed, set int, dir []byte) uint32 {
	if len(f.ends) > 0 && f.is(f.last, set, dir) {
		return f.last
	}
	slot := (maphash.Bytes(seed, dir) + uint64(set)*0x9e3779b97f4a7c15) & (frontSlots - 1)
	for ; f.table[slot] != 0; slot = (slot + 1) & (frontSlots - 1) {
		if f.last = f.table[slot] - 1; f.is(f.last, set, dir) {
			return f.last
		}
	}
	f.last = uint32(len(f.ends))
	f.text = append(append(f.text, byte(set)), dir...)
	f.ends = append(f.ends, uint32(len(f.text)))
	f.table[slot] = f.last + 1
	f.slots = append(f.slots, uint32(slot))
	return f.last
}

// empty takes all out.
func (f *fronts) empty() {
	for _, slot := range f.slots {
		f.table[slot] = 0
	}
	f.text, f.ends, f.slots, f.last = f.text[:0], f.ends[:0], f.slots[:0], 0
}

// sort puts the entries into the order of their keys.
func (s *Set) sort() {
	ends := s.deal()
	from := uint32(0)
	for _, end := range ends {
		s.sortItems(s.items[from:end], 0)
		from = end
	}
	order := make([]uint32, len(ends))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return bytes.Compare(s.fronts.bytes(a), s.fronts.bytes(b)) })
	s.entries = s.entries[:0]
	for len(order) > 0 {
		order = s.join(order, ends)
	}
}

// deal makes the items, those of each front together in the order in which they came, and returns where those of each front end.
func (s *Set) deal() (ends []uint32) {
	ends = make([]uint32, len(s.fronts.ends))
	s.items = s.items[:len(s.entries)]
	for _, place := range s.entries {
		front, _ := s.entry(place)
		ends[front]++
	}
	at := uint32(0)
	for i, n := range ends {
		ends[i] = at
		at += n
	}
	for _, place := range s.entries {
		front, _ := s.entry(place)
		s.items[ends[front]].entry = place
		ends[front]++
	}
	return ends
}

// join appends the entries of the first front of order, and of those that begin with it, to the entries, and returns the rest of
// order. A base has no slash, and the rest of a longer front has one: so a base comes either before all keys of such a front, or
// after them.
func (s *Set) join(order, ends []uint32) []uint32 {
	first := order[0]
	front, own := s.fronts.bytes(first), s.items[:ends[first]]
	if first > 0 {
		own = own[ends[first-1]:]
	}
	for order = order[1:]; len(order) > 0; {
		rest, longer := bytes.CutPrefix(s.fronts.bytes(order[0]), front)
		if !longer {
			break
		}
		for len(own) > 0 && bytes.Compare(s.base(own[0].entry), rest) < 0 {
			s.entries, own = append(s.entries, own[0].entry), own[1:]
		}
		order = s.join(order, ends)
	}
	for _, x := range own {
		s.entries = append(s.entries, x.entry)
	}
	return order
}
