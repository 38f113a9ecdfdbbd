package valueset

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// item is an entry while it is sorted: eight bytes of its key stand beside it, so
// that most comparisons need not look at the key itself.
type item struct {
	head  uint64
	entry uint32
}

// few items are sorted by comparing whole keys.
const few = 12

// sortItems sorts entries whose first depth bytes are equal. Keys share long
// beginnings, because names do: eight bytes at a time, what is equal in all costs
// one look, and what differs is compared as a number.
func (s *Set) sortItems(items []item, depth int) {
	for len(items) > few {
		var differ uint64
		for i := range items {
			items[i].head = head(s.key(items[i].entry), depth)
			differ |= items[i].head ^ items[0].head
		}
		if differ == 0 && !s.anyEnds(items, depth+8) {
			depth += 8
			continue
		}
		slices.SortFunc(items, func(a, b item) int {
			if a.head != b.head {
				return cmp.Compare(a.head, b.head)
			}
			return s.compareEnds(a, b, depth+8)
		})
		// What ends within these eight bytes stands in its place already, in front
		// of those of the same head that do not.
		for from := 0; from < len(items); {
			to := from + 1
			for to < len(items) && items[to].head == items[from].head {
				to++
			}
			for from < to && len(s.key(items[from].entry)) <= depth+8 {
				from++
			}
			s.sortItems(items[from:to], depth+8)
			from = to
		}
		return
	}
	slices.SortFunc(items, func(a, b item) int {
		return bytes.Compare(s.key(a.entry)[depth:], s.key(b.entry)[depth:])
	})
}

// anyEnds reports whether a key has no more than n bytes.
func (s *Set) anyEnds(items []item, n int) bool {
	return slices.ContainsFunc(items, func(x item) bool { return len(s.key(x.entry)) <= n })
}

// compareEnds orders two keys whose first n bytes are equal where both have them: a
// key that ends before is a prefix of the other, but for zero bytes, and comes first.
func (s *Set) compareEnds(a, b item, n int) int {
	return cmp.Compare(min(len(s.key(a.entry)), n+1), min(len(s.key(b.entry)), n+1))
}

// head is the eight bytes of key behind depth as a number that sorts as they do;
// bytes behind its end count as zero.
func head(key []byte, depth int) uint64 {
	if len(key) >= depth+8 {
		return binary.BigEndian.Uint64(key[depth:])
	}
	var b [8]byte
	copy(b[:], key[min(depth, len(key)):])
	return binary.BigEndian.Uint64(b[:])
}
