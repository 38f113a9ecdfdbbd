package bundle

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
)

// gzipHead is the header of an archive (RFC 1952): deflate, no name, no time, fastest, an unknown system.
var gzipHead = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff}

// joiner writes a gzip stream. Parts that are compressed already are put into it as they are.
type joiner struct {
	w       io.Writer
	deflate *flate.Writer
	crc     uint32
	size    uint32 // modulo 2^32
}

func newJoiner(w io.Writer) (*joiner, error) {
	if _, err := w.Write(gzipHead); err != nil {
		return nil, err
	}
	e, err := encoder(w)
	return &joiner{w: w, deflate: e}, err
}

// Write compresses bytes.
func (j *joiner) Write(b []byte) (int, error) {
	j.crc = crc32.Update(j.crc, crc32.IEEETable, b)
	j.size += uint32(len(b))
	return j.deflate.Write(b)
}

// add puts a part of n bytes into the stream. What follows it refers to nothing before it.
func (j *joiner) add(p *packed, n int64) error {
	if err := j.deflate.Flush(); err != nil {
		return err
	}
	if _, err := io.Copy(j.w, p.deflate); err != nil {
		return err
	}
	j.deflate.Reset(j.w)
	j.crc = joinCRC(j.crc, p.crc, n)
	j.size += uint32(n)
	return nil
}

// Close ends the stream.
func (j *joiner) Close() error {
	if err := j.deflate.Close(); err != nil {
		return err
	}
	encoders.Put(j.deflate)
	_, err := j.w.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, j.crc), j.size))
	return err
}

// joinCRC is the CRC-32 of some bytes, whose CRC-32 is a, and of n bytes after them, whose CRC-32 is b. A CRC is a
// polynomial over GF(2) modulo that of CRC-32, its highest bit the coefficient of 1: to have n more bytes after it
// multiplies it by x to the power of 8n.
func joinCRC(a, b uint32, n int64) uint32 {
	power, square := uint32(1)<<31, uint32(1)<<(31-8) // 1 and x^8
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			power = multiply(power, square)
		}
		square = multiply(square, square)
	}
	return multiply(power, a) ^ b
}

// multiply multiplies two such polynomials.
func multiply(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a>>31 == 1 {
			product ^= b
		}
		b = b>>1 ^ crc32.IEEE&-(b&1)
	}
	return product
}
