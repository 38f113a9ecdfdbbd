package bundle

import (
	"crypto/sha256"
	"io"
)

const (
	digestBlock  = 128 << 10
	digestBlocks = 3 // one is filled, one is digested, and one waits in between
)

// digester is the SHA-256 of what is written to it. It is made in a goroutine, because the bytes of a packed member have to be
// unpacked first, which takes about as long.
type digester struct {
	block []byte
	given chan []byte
	free  chan []byte
	done  chan []byte
}

func newDigester() *digester {
	d := &digester{given: make(chan []byte, digestBlocks), free: make(chan []byte, digestBlocks), done: make(chan []byte, 1)}
	for range digestBlocks {
		d.free <- nil // made when it is needed
	}
	go d.work()
	d.take()
	return d
}

func (d *digester) work() {
	sum := sha256.New()
	for block := range d.given {
		sum.Write(block)
		d.free <- block
	}
	d.done <- sum.Sum(nil)
}

// take gets an empty block.
func (d *digester) take() {
	if d.block = (<-d.free)[:0]; d.block == nil {
		d.block = make([]byte, 0, digestBlock)
	}
}

func (d *digester) pass() {
	d.given <- d.block
	d.take()
}

func (d *digester) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := copy(d.block[len(d.block):cap(d.block)], rest)
		if d.block, rest = d.block[:len(d.block)+n], rest[n:]; len(d.block) == cap(d.block) {
			d.pass()
		}
	}
	return len(b), nil
}

// ReadFrom has io.Copy read into the blocks.
func (d *digester) ReadFrom(r io.Reader) (all int64, err error) {
	for err == nil {
		var n int
		n, err = r.Read(d.block[len(d.block):cap(d.block)])
		all += int64(n)
		if d.block = d.block[:len(d.block)+n]; len(d.block) == cap(d.block) {
			d.pass()
		}
	}
	if err == io.EOF {
		err = nil
	}
	return all, err
}

// sum is the digest. Nothing can be written after it.
func (d *digester) sum() []byte {
	d.given <- d.block
	close(d.given)
	return <-d.done
}
