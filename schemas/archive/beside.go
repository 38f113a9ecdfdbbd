package archive

import (
	"crypto/sha256"
	"hash"
)

// besideBlock is how many bytes are digested at once, and from how many on another core does it.
const besideBlock = 128 << 10

// besideBlocks are the blocks in use: one is filled, the others are digested or wait for it.
const besideBlocks = 3

// beside digests a member while it is parsed: in a goroutine, unless the member is small.
type beside struct {
	h     hash.Hash
	buf   []byte
	given chan []byte // nil before there is a goroutine
	back  chan []byte
	made  int
}

func newBeside() *beside { return &beside{h: sha256.New()} }

// write adds bytes, which the caller may use again.
func (d *beside) write(b []byte) {
	if d.buf = append(d.buf, b...); len(d.buf) < besideBlock {
		return
	}
	if d.given == nil {
		d.given, d.back = make(chan []byte, besideBlocks), make(chan []byte, besideBlocks)
		go d.work(d.given, d.back)
	}
	d.given <- d.buf
	if d.made++; d.made < besideBlocks {
		d.buf = make([]byte, 0, 2*besideBlock)
	} else {
		d.buf = <-d.back
	}
}

func (d *beside) work(given, back chan []byte) {
	for b := range given {
		d.h.Write(b)
		back <- b[:0]
	}
	close(back)
}

// sum waits for the digest of everything.
func (d *beside) sum() hash.Hash {
	d.close()
	d.h.Write(d.buf)
	d.buf = nil
	return d.h
}

// close ends the goroutine. It may be called more than once.
func (d *beside) close() {
	if d.given == nil {
		return
	}
	close(d.given)
	for range d.back {
	}
	d.given = nil
}
