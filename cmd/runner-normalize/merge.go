package main

import "container/heap"

// cursor walks the spans of one run in their order. It reads ahead while the lines
// that are wanted follow each other.
type cursor struct {
	spilled
	s     *store
	order int // runs are in the order of time
	next  uint32
	head  span

	portion []byte // some of the index
	index   []byte // what of it is still to be decoded

	window []byte
	from   int64 // place of window in the file
	ahead  int
	last   int64 // where the last lines read ended
}

const (
	indexPortion = 512 * spanSize
	minAhead     = 4 << 10
)

// advance makes head the next span; false at the end.
func (c *cursor) advance() (bool, error) {
	if len(c.index) == 0 {
		if c.next == c.spans {
			return false, nil
		}
		n := min(int(c.spans-c.next)*spanSize, indexPortion)
		if c.portion == nil {
			c.portion = make([]byte, n)
		}
		c.index = c.portion[:n]
		if _, err := c.s.file.ReadAt(c.index, c.lineEnd+int64(c.next)*spanSize); err != nil {
			return false, spoolError(err)
		}
	}
	c.head = decodeSpan(c.index)
	c.index = c.index[spanSize:]
	c.next++
	return true, nil
}

// read returns the lines of head. They are valid until the next read of any cursor.
func (c *cursor) read(most int) ([]byte, error) {
	off, n := c.data+int64(c.head.off), int(c.head.n)
	if off >= c.from && off+int64(n) <= c.from+int64(len(c.window)) {
		c.last = off + int64(n)
		return c.window[off-c.from:][:n], nil
	}
	if off == c.last {
		c.ahead = min(2*c.ahead, most)
	} else {
		c.ahead = min(minAhead, most)
	}
	c.last = off + int64(n)
	if n > c.ahead {
		// The arena is not needed any more, and every span fitted into it.
		b := c.s.arena[:n]
		if _, err := c.s.file.ReadAt(b, off); err != nil {
			return nil, spoolError(err)
		}
		return b, nil
	}
	size := int(min(int64(c.ahead), c.lineEnd-off))
	if cap(c.window) < size {
		c.window = make([]byte, most)
	}
	c.window, c.from = c.window[:size], off
	if _, err := c.s.file.ReadAt(c.window, off); err != nil {
		return nil, spoolError(err)
	}
	return c.window[:n], nil
}

// cursors is a heap: the first place, and of one place the oldest run, on top.
type cursors []*cursor

func (h cursors) Len() int { return len(h) }
func (h cursors) Less(i, j int) bool {
	if h[i].head.key != h[j].head.key {
		return h[i].head.key < h[j].head.key
	}
	return h[i].order < h[j].order
}
func (h cursors) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *cursors) Push(x any)   { *h = append(*h, x.(*cursor)) }
func (h *cursors) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// each calls f with the lines of every task in canonical order; a task's lines may
// come in several portions. The store must have been rekeyed.
func (s *store) each(f func(place uint32, lines []byte) error) error {
	for _, p := range s.spans {
		if err := f(p.key, s.arena[p.off:p.off+p.n]); err != nil {
			return err
		}
	}
	most := min(max(arenaSize/(len(s.runs)+1), minAhead), 64<<10)
	var h cursors
	for i, r := range s.runs {
		c := &cursor{spilled: r, s: s, order: i, last: -1}
		if _, err := c.advance(); err != nil {
			return err
		}
		h = append(h, c)
	}
	heap.Init(&h)
	for len(h) > 0 {
		c := h[0]
		lines, err := c.read(most)
		if err != nil {
			return err
		}
		if err := f(c.head.key, lines); err != nil {
			return err
		}
		more, err := c.advance()
		switch {
		case err != nil:
			return err
		case more:
			heap.Fix(&h, 0)
		default:
			heap.Pop(&h)
		}
	}
	return nil
}
