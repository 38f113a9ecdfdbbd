package valueset

import "encoding/binary"

const (
	batchSize    = 128 << 10 // bytes of values handed over at once
	behindsAtAll = 3         // batches: being filled, waiting, and being added
	together     = 32        // values whose memory is asked for at once
)

// Behind is a Set that a goroutine of its own fills, for a stage with more to do. An
// error may be told later, but no later than by Each and Wait.
type Behind struct {
	set    *Set
	batch  []byte // values: index of the set, length (4 bytes), bytes
	given  chan []byte
	back   chan added
	under  int // batches given and not back yet
	spare  [][]byte
	err    error
	closed bool
}

// added is a batch that comes back, and what became of its values.
type added struct {
	batch []byte
	err   error
}

// NewBehind makes an empty set. The caller must Close it.
func NewBehind() *Behind {
	b := &Behind{set: New(), given: make(chan []byte, behindsAtAll), back: make(chan added, behindsAtAll)}
	go b.work()
	return b
}

// Add puts a value into the surface set of the given index, as Set.Add does.
func (b *Behind) Add(set int, value []byte) error {
	if set < 0 || len(value) == 0 || b.err != nil {
		return b.err
	}
	b.batch = append(b.batch, byte(set))
	b.batch = binary.LittleEndian.AppendUint32(b.batch, uint32(len(value)))
	b.batch = append(b.batch, value...)
	if len(b.batch) >= batchSize {
		b.pass()
	}
	return b.err
}

func (b *Behind) pass() {
	b.given <- b.batch
	b.batch = nil
	if b.under++; b.under == behindsAtAll {
		b.take()
	}
	if n := len(b.spare); n > 0 {
		b.batch, b.spare = b.spare[n-1], b.spare[:n-1]
	}
}

func (b *Behind) take() {
	a := <-b.back
	b.under--
	b.spare = append(b.spare, a.batch)
	if b.err == nil {
		b.err = a.err
	}
}

// Wait returns when all values handed over are in the set, or could not be put there.
// Those of the last batch may not have been handed over.
func (b *Behind) Wait() error {
	for b.under > 0 {
		b.take()
	}
	return b.err
}

// Each is Set.Each.
func (b *Behind) Each(f func(set int, value []byte) error) error {
	b.pass()
	if err := b.Wait(); err != nil {
		return err
	}
	return b.set.Each(f)
}

// Close ends the goroutine and releases the scratch files.
func (b *Behind) Close() {
	if !b.closed {
		b.closed = true
		close(b.given)
		b.Wait()
		b.set.Close()
	}
}

func (b *Behind) work() {
	var err error
	for batch := range b.given {
		if err == nil {
			err = b.set.addBatch(batch)
		}
		b.back <- added{batch[:0], err}
	}
}

// found is a value of a batch, and its hash.
type found struct {
	set   int
	value []byte
	hash  uint64
}

// addBatch adds the values of a batch, some at a time: what is in memory about one
// lies anywhere, so that of the next ones is asked for before it is needed.
func (s *Set) addBatch(batch []byte) error {
	s.allocate()
	var some [together]found
	for len(batch) > 0 {
		n := 0
		for ; n < len(some) && len(batch) > 0; n++ {
			end := 5 + binary.LittleEndian.Uint32(batch[1:])
			f := found{set: int(batch[0]), value: batch[5:end]}
			f.hash = s.hash(f.set, f.value)
			some[n], batch = f, batch[end:]
		}
		s.touch(some[:n])
		for _, f := range some[:n] {
			if err := s.add(f.set, f.value, f.hash); err != nil {
				return err
			}
		}
	}
	return nil
}

// touch reads a byte of every place that add will look at first.
func (s *Set) touch(some []found) {
	var places [together]uint32
	for i := range some {
		places[i] = s.table[some[i].hash&(tableSize-1)] & placeMask
	}
	for i := range some {
		if places[i] > 0 {
			s.touched += s.arena[(places[i]-1)*entryAlign]
		}
	}
}
