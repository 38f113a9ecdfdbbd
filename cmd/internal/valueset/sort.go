package valueset

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// item is an entry while it is sorted, with eight bytes of its key, so that most
// comparisons need not look at the key itself.
type item struct {
	head  uint64
	entry uint32
	rest  uint32 // bytes of the key from there on, goesOn if there are more than eight
}

const goesOn = 9

// Groups of so few items are sorted by comparing: by whole keys, by heads.
const (
	fewKeys  = 8
	fewHeads = 48
)

// sortItems sorts entries of one front whose first depth bytes are equal. Keys, which are bases here, share long
// beginnings, because names do: these are skipped, and what differs is sorted as numbers
// of eight bytes.
func (s *Set) sortItems(items []item, depth int) {
	for len(items) > fewKeys {
		depth = s.heads(items, depth)
		if differ, ends := differences(items); differ != 0 || ends {
			s.sortHeads(items, depth)
			return
		}
		depth += 8
	}
	slices.SortFunc(items, func(a, b item) int {
		return bytes.Compare(s.base(a.entry)[depth:], s.base(b.entry)[depth:])
	})
}

// heads takes the heads from a depth on up to which all keys are equal, and returns it: depth or more. How much more, three of the
// keys say; if another one is not like them, it is depth. The keys are far apart in memory, so each is looked at once.
func (s *Set) heads(items []item, depth int) int {
	first := s.base(items[0].entry)
	to := min(common(first, s.base(items[len(items)/2].entry), depth), common(first, s.base(items[len(items)-1].entry), depth))
	for i := 0; i < len(items); i++ {
		if i%together == 0 && i+together < len(items) {
			s.fetch(items[i+together:min(i+2*together, len(items))], depth)
		}
		x := &items[i]
		key := s.base(x.entry)
		if to > depth && (len(key) < to || !bytes.Equal(key[depth:to], first[depth:to])) {
			i, to = -1, depth // once more
			continue
		}
		x.head, x.rest = head(key, to), uint32(min(len(key)-to, goesOn))
	}
	return to
}

// fetch reads a byte of every place that heads will look at.
func (s *Set) fetch(items []item, depth int) {
	for i := range items {
		at := int(items[i].entry * entryAlign)
		s.touched += s.arena[at] + s.arena[min(at+entryHead+depth, len(s.arena)-1)]
	}
}

// common is up to where two keys are equal that are equal up to a depth.
func common(a, b []byte, depth int) int {
	for depth < len(a) && depth < len(b) && a[depth] == b[depth] {
		depth++
	}
	return depth
}

// differences has the bits in which heads differ, and whether a key ends there.
func differences(items []item) (differ uint64, ends bool) {
	for i := range items {
		differ |= items[i].head ^ items[0].head
		ends = ends || items[i].rest < goesOn
	}
	return differ, ends
}

// sortHeads is sortItems where the heads are there.
func (s *Set) sortHeads(items []item, depth int) {
	differ, ends := differences(items)
	switch {
	case differ == 0 && !ends:
		s.sortItems(items, depth+8)
	case differ == 0 || len(items) <= fewHeads:
		s.compareHeads(items, depth)
	default:
		shift := (63 - bits.LeadingZeros64(differ)) &^ 7
		for _, group := range deal(items, shift) {
			if group[0] < group[1] {
				s.sortHeads(items[group[0]:group[1]], depth)
			}
		}
	}
}

// compareHeads sorts by heads, and then what they leave open. A key that ends within
// these eight bytes is a prefix of the others of the same head, except for zero bytes,
// and comes first; of two such the shorter one.
func (s *Set) compareHeads(items []item, depth int) {
	slices.SortFunc(items, func(a, b item) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return cmp.Compare(a.rest, b.rest)
	})
	for from := 0; from < len(items); {
		to := from + 1
		for to < len(items) && items[to].head == items[from].head {
			to++
		}
		for from < to && items[from].rest < goesOn {
			from++
		}
		if to-from > 1 {
			s.sortItems(items[from:to], depth+8)
		}
		from = to
	}
}

// deal moves items into groups by one byte of their heads, in place, and returns
// where each group begins and ends.
func deal(items []item, shift int) (groups [256][2]uint32) {
	for i := range items {
		groups[byte(items[i].head>>shift)][1]++
	}
	var next [256]uint32
	at := uint32(0)
	for b := range groups {
		n := groups[b][1]
		groups[b], next[b] = [2]uint32{at, at + n}, at
		at += n
	}
	for b := range groups {
		for next[b] < groups[b][1] {
			x := items[next[b]]
			// Move the item here to its group, until the item that belongs here comes.
			for c := byte(x.head >> shift); int(c) != b; c = byte(x.head >> shift) {
				x, items[next[c]] = items[next[c]], x
				next[c]++
			}
			items[next[b]] = x
			next[b]++
		}
	}
	return groups
}

// head is the eight bytes of key after depth as a number that sorts as they do;
// bytes after its end count as zero.
func head(key []byte, depth int) uint64 {
	if len(key) >= depth+8 {
		return binary.BigEndian.Uint64(key[depth:])
	}
	var b [8]byte
	copy(b[:], key[min(depth, len(key)):])
	return binary.BigEndian.Uint64(b[:])
}
