package bundle

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"

	"github.com/runner-evidence/runner/schemas"
)

// Packer compresses and digests one member while it is written, so that a member is never stored
// as it is, and not read again when the archive is written. It is not safe for concurrent use.
type Packer struct {
	w       counted
	deflate *flate.Writer // nil when all that was written is in w
	sum     hash.Hash
	crc     uint32
	bytes   int64
}

// NewPacker writes the compressed bytes to w.
func NewPacker(w io.Writer) *Packer { return &Packer{w: counted{w: w}, sum: sha256.New()} }

// encoders have no state between members, but much memory.
var encoders sync.Pool

// encoder is a compressor as archives need it.
func encoder(w io.Writer) (*flate.Writer, error) {
	if e, ok := encoders.Get().(*flate.Writer); ok {
		e.Reset(w)
		return e, nil
	}
	return flate.NewWriter(w, flate.BestSpeed)
}

// Write adds bytes of the member.
func (p *Packer) Write(b []byte) (n int, err error) {
	if p.deflate == nil {
		if p.deflate, err = encoder(&p.w); err != nil {
			return 0, err
		}
	}
	p.sum.Write(b)
	p.crc = crc32.Update(p.crc, crc32.IEEETable, b)
	p.bytes += int64(len(b))
	return p.deflate.Write(b)
}

// Flush writes all that it was given to the underlying writer, ending at a byte. What follows refers to
// nothing before it, as if it were another member. After an error, nothing may follow.
func (p *Packer) Flush() error {
	if p.deflate == nil {
		return nil
	}
	err := p.deflate.Flush()
	encoders.Put(p.deflate)
	p.deflate = nil
	return err
}

// Source is the member as it was flushed, under a name. compressed has the bytes that the Packer wrote.
func (p *Packer) Source(name string, compressed io.ReaderAt) Source {
	section := func() io.Reader { return io.NewSectionReader(compressed, 0, p.w.n) }
	return Source{
		ManifestFile: schemas.ManifestFile{Path: name, SHA256: schemas.DigestFrom(p.sum), Bytes: p.bytes},
		Content:      &unpacked{compressed: section(), rest: p.bytes},
		packed:       &packed{section(), p.crc},
	}
}

// packed is a member as a part of a deflate stream: it ends at a byte, without a last block.
type packed struct {
	deflate io.Reader
	crc     uint32 // CRC-32 of the member's bytes
}

// lastBlock ends a deflate stream: an empty one.
var lastBlock = []byte{0x03, 0x00}

// unpacked reads a member that was packed.
type unpacked struct {
	compressed io.Reader
	r          io.ReadCloser // nil before the first read
	rest       int64
}

func (u *unpacked) Read(b []byte) (int, error) {
	if u.r == nil {
		u.r = flate.NewReader(io.MultiReader(u.compressed, bytes.NewReader(lastBlock)))
	}
	n, err := u.r.Read(b)
	if u.rest -= int64(n); err == io.EOF && u.rest != 0 {
		err = fmt.Errorf("a packed member has %d bytes less than were written to it", u.rest)
	}
	return n, err
}

// counted counts what is written.
type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
