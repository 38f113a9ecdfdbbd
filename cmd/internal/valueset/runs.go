package valueset

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const (
	fanIn     = 16       // runs merged at once
	runBuffer = 32 << 10 // bytes, per run being read or written
)

// sortedRun is a file of sorted, distinct keys, as appendKey writes them. Its level is the number of merges it has been through.
type sortedRun struct {
	file  *os.File
	level int
}

// runs is a set of sorted runs. fanIn runs of one level become one of the next,
// so the number of open files grows with the logarithm of the data, and the work
// with data times that.
type runs struct {
	list []sortedRun // levels never rise along the list
}

// add writes a new run from what fill puts, which must be sorted and distinct.
func (r *runs) add(fill func(put func(key []byte, like int) error) error) error {
	f, err := writeRun(fill)
	if err != nil {
		return err
	}
	r.list = append(r.list, sortedRun{f, 0})
	for n := len(r.list); n >= fanIn && r.list[n-fanIn].level == r.list[n-1].level; n = len(r.list) {
		if err := r.mergeLast(fanIn); err != nil {
			return err
		}
	}
	return nil
}

// mergeLast replaces the last n runs by one.
func (r *runs) mergeLast(n int) error {
	at := len(r.list) - n
	f, err := writeRun(func(put func([]byte, int) error) error {
		return merge(r.list[at:], nil, func(key []byte) error { return put(key, 0) })
	})
	if err != nil {
		return err
	}
	level := r.list[at].level + 1
	for _, old := range r.list[at:] {
		old.file.Close()
	}
	r.list = append(r.list[:at], sortedRun{f, level})
	return nil
}

// each calls f with every distinct key in order, those of a sorted set in memory
// among them.
func (r *runs) each(memory *Set, f func(key []byte) error) error {
	for len(r.list) > fanIn {
		if err := r.mergeLast(min(fanIn, len(r.list)-fanIn+1)); err != nil {
			return err
		}
	}
	return merge(r.list, memory, f)
}

func (r *runs) close() {
	for _, x := range r.list {
		x.file.Close()
	}
	r.list = nil
}

// appendKey appends a key: how many of its bytes are those of the key before it and how many follow, as uvarints, and these.
func appendKey(b, key []byte, like int) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(like)), uint64(len(key)-like))
	return append(b, key[like:]...)
}

func writeRun(fill func(put func(key []byte, like int) error) error) (*os.File, error) {
	f, err := tool.Spool()
	if err != nil {
		return nil, err
	}
	buf := make([]byte, 0, 2*runBuffer)
	err = fill(func(key []byte, like int) error {
		buf = appendKey(buf, key, like)
		if len(buf) < runBuffer {
			return nil
		}
		_, err := f.Write(buf)
		buf = buf[:0]
		return err
	})
	if err == nil {
		_, err = f.Write(buf)
	}
	if err != nil {
		f.Close()
		return nil, tool.ScratchError(err)
	}
	return f, nil
}

// cursor walks one run, or a sorted set in memory.
type cursor struct {
	set  *Set
	walk int // entries of the set
	file io.Reader
	buf  []byte // read and not walked yet
	room []byte // what buf lies in
	key  []byte
}

func newCursor(f *os.File) *cursor {
	return &cursor{file: io.NewSectionReader(f, 0, 1<<62), room: make([]byte, runBuffer)}
}

// next reads the next key; false at the end of the run.
func (c *cursor) next() (bool, error) {
	if c.set != nil {
		if c.walk == len(c.set.entries) {
			return false, nil
		}
		c.key, _ = c.set.walk(c.walk)
		c.walk++
		return true, nil
	}
	like, rest, end := parseKey(c.buf)
	for end == 0 {
		if err := c.more(); err == io.EOF && len(c.buf) == 0 {
			return false, nil
		} else if err != nil {
			return false, tool.ScratchError(err)
		}
		like, rest, end = parseKey(c.buf)
	}
	c.key = append(c.key[:like], rest...)
	c.buf = c.buf[end:]
	return true, nil
}

// parseKey is a key that appendKey wrote, and where it ends, 0 if there is not all of it.
func parseKey(b []byte) (like int, rest []byte, end int) {
	l, used := binary.Uvarint(b)
	if used <= 0 {
		return 0, nil, 0
	}
	n, more := binary.Uvarint(b[used:])
	if more <= 0 || uint64(len(b)-used-more) < n {
		return 0, nil, 0
	}
	end = used + more + int(n)
	return int(l), b[used+more : end], end
}

// more reads on, into twice the room if it is full.
func (c *cursor) more() error {
	have := c.buf
	if len(have) >= len(c.room)/2 {
		c.room = make([]byte, max(runBuffer, 2*len(c.room)))
	}
	n := copy(c.room, have)
	got, err := c.file.Read(c.room[n:])
	c.buf = c.room[:n+got]
	if got > 0 {
		return nil
	}
	if err == io.EOF && n > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// merge calls f with every distinct key of the runs, and of a set unless that is nil,
// in order, by a heap of cursors.
func merge(list []sortedRun, memory *Set, f func(key []byte) error) error {
	var cursors, heap []*cursor
	for _, x := range list {
		cursors = append(cursors, newCursor(x.file))
	}
	if memory != nil {
		cursors = append(cursors, &cursor{set: memory})
	}
	for _, c := range cursors {
		ok, err := c.next()
		if err != nil {
			return err
		}
		if ok {
			heap = append(heap, c)
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	for len(heap) > 0 {
		top := heap[0]
		if err := f(top.key); err != nil {
			return err
		}
		// The same key of another cursor can only be next.
		for i := 1; i < min(3, len(heap)); {
			if !bytes.Equal(heap[i].key, top.key) {
				i++
				continue
			}
			var err error
			if heap, err = advance(heap, i); err != nil {
				return err
			}
			i = 1
		}
		var err error
		if heap, err = advance(heap, 0); err != nil {
			return err
		}
	}
	return nil
}

// advance moves the cursor at place i of a heap to its next key, and takes it out if there is none.
func advance(heap []*cursor, i int) ([]*cursor, error) {
	ok, err := heap[i].next()
	if err != nil {
		return heap, err
	}
	if !ok {
		last := len(heap) - 1
		heap[i] = heap[last]
		heap = heap[:last]
	}
	sink(heap, i)
	return heap, nil
}

// sink restores the heap order below position i.
func sink(heap []*cursor, i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(heap) && bytes.Compare(heap[child].key, heap[least].key) < 0 {
				least = child
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}
