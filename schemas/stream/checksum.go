package stream

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/crc32"
	"sync"

	"github.com/runner-evidence/runner/schemas"
)

// newHash is the checksum of a stream by its name in the header, where "" is SHA-256.
func newHash(checksum string) hash.Hash {
	if checksum == schemas.ChecksumCRC32C {
		return new(crc32c)
	}
	return sha256.New()
}

// crc32c is CRC-32C. What the library needs for doing it fast takes longer to make than a short stream takes without.
type crc32c struct {
	sum   uint32
	short int // bytes that were done without
}

// shortStream is how many bytes are.
const shortStream = 64 << 10

// plain is the table of one byte: the library uses a processor's instruction only with the table that it made itself.
var plain = sync.OnceValue(func() *crc32.Table {
	t := new(crc32.Table)
	for i := range t {
		sum := uint32(i)
		for range 8 {
			sum = sum>>1 ^ crc32.Castagnoli&-(sum&1)
		}
		t[i] = sum
	}
	return t
})

var fast = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// Write adds bytes. It never fails.
func (c *crc32c) Write(b []byte) (int, error) {
	n := min(len(b), shortStream-c.short)
	if c.short += n; n > 0 {
		c.sum = crc32.Update(c.sum, plain(), b[:n])
	}
	if n < len(b) {
		c.sum = crc32.Update(c.sum, fast(), b[n:])
	}
	return len(b), nil
}

// Sum appends the checksum, four bytes in network order.
func (c *crc32c) Sum(b []byte) []byte { return binary.BigEndian.AppendUint32(b, c.sum) }

// Reset begins anew.
func (c *crc32c) Reset() { *c = crc32c{} }

// Size is how many bytes the checksum has.
func (c *crc32c) Size() int { return crc32.Size }

// BlockSize says that any number of bytes can be written at once.
func (c *crc32c) BlockSize() int { return 1 }

// carried is the checksum that a trailer must carry under a header, and the value of the other one, which it must not have.
func (t *Trailer) carried(checksum string) (value, other string) {
	if checksum == schemas.ChecksumCRC32C {
		return t.CRC32C, t.SHA256
	}
	return t.SHA256, t.CRC32C
}

// carry puts a checksum into a trailer.
func (t *Trailer) carry(checksum, value string) {
	if checksum == schemas.ChecksumCRC32C {
		t.CRC32C = value
	} else {
		t.SHA256 = value
	}
}
