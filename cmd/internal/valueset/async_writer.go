package valueset

import (
	"bytes"
	"encoding/binary"
)

const (
	batchSize    = 128 << 10 // bytes of values handed over at once
	asyncBatches = 3         // one is filled, one waits, and one is added
	together     = 32        // values whose memory is fetched at once
	valueHead    = 5         // bytes before a value in a batch
)

// AsyncWriter is a Set that a goroutine fills, for a stage with much other work. An
// error may be returned later, but no later than by Each and Wait.
type AsyncWriter struct {
	set      *Set
	batch    []byte // values: index of the set, length (4 bytes), bytes
	last     int    // where the last value of batch begins, behind its head
	given    chan []byte
	back     chan added
	inFlight int // batches given and not back yet
	spare    [][]byte
	err      error
	closed   bool
}

// added is a batch that comes back, and what became of its values.
type added struct {
	batch []byte
	err   error
}

// NewAsyncWriter makes an empty set. The caller must Close it.
func NewAsyncWriter() *AsyncWriter {
	w := &AsyncWriter{set: New(), given: make(chan []byte, asyncBatches), back: make(chan added, asyncBatches)}
	go w.work()
	return w
}

// Add puts a value into the surface set of the given index, as Set.Add does.
func (w *AsyncWriter) Add(set int, value []byte) error {
	if set < 0 || len(value) == 0 || w.err != nil {
		return w.err
	}
	if w.last > 0 && bytes.Equal(w.batch[w.last:], value) && w.batch[w.last-valueHead] == byte(set) {
		return nil // as often as a name is used several times in a row
	}
	w.last = len(w.batch) + valueHead
	w.batch = append(w.batch, byte(set))
	w.batch = binary.LittleEndian.AppendUint32(w.batch, uint32(len(value)))
	w.batch = append(w.batch, value...)
	if len(w.batch) >= batchSize {
		w.pass()
	}
	return w.err
}

func (w *AsyncWriter) pass() {
	w.given <- w.batch
	w.batch, w.last = nil, 0
	if w.inFlight++; w.inFlight == asyncBatches {
		w.take()
	}
	if n := len(w.spare); n > 0 {
		w.batch, w.spare = w.spare[n-1], w.spare[:n-1]
	}
}

func (w *AsyncWriter) take() {
	a := <-w.back
	w.inFlight--
	w.spare = append(w.spare, a.batch)
	if w.err == nil {
		w.err = a.err
	}
}

// Wait returns when all values handed over are in the set, or could not be put there.
// Those of the last batch may not have been handed over.
func (w *AsyncWriter) Wait() error {
	for w.inFlight > 0 {
		w.take()
	}
	return w.err
}

// Each is Set.Each.
func (w *AsyncWriter) Each(f func(set int, value []byte) error) error {
	w.pass()
	if err := w.Wait(); err != nil {
		return err
	}
	return w.set.Each(f)
}

// Close ends the goroutine and releases the scratch files.
func (w *AsyncWriter) Close() {
	if !w.closed {
		w.closed = true
		close(w.given)
		w.Wait()
		w.set.Close()
	}
}

func (w *AsyncWriter) work() {
	var err error
	for batch := range w.given {
		if err == nil {
			err = w.set.addBatch(batch)
		}
		w.back <- added{batch[:0], err}
	}
}

// addBatch adds the values of a batch, some at a time: their entries are far apart
// in memory, so those of the next ones are fetched before they are needed.
func (s *Set) addBatch(batch []byte) error {
	var some [together]found
	for len(batch) > 0 {
		n, size := 0, 0
		for ; n < len(some) && size < len(batch); n++ {
			size += valueHead + int(binary.LittleEndian.Uint32(batch[size+1:]))
		}
		if err := s.make(n, size); err != nil {
			return err
		}
		for i := range some[:n] {
			end := valueHead + binary.LittleEndian.Uint32(batch[1:])
			some[i] = s.find(int(batch[0]), batch[valueHead:end])
			batch = batch[end:]
		}
		s.touch(some[:n])
		for _, f := range some[:n] {
			s.add(f)
		}
	}
	return nil
}

// touch reads a byte of every place that add will look at first.
func (s *Set) touch(some []found) {
	var places [together]uint32
	for i := range some {
		places[i] = s.table[s.slot(some[i].hash)] & placeMask
	}
	for i := range some {
		if places[i] > 0 {
			s.touched += s.arena[(places[i]-1)*entryAlign]
		}
	}
}
