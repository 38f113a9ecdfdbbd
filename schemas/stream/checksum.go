package stream

import (
	"crypto/sha256"
	"hash"
	"hash/crc32"

	"github.com/runner-evidence/runner/schemas"
)

// newHash is the checksum of a stream by its name in the header, where "" is SHA-256.
func newHash(checksum string) hash.Hash {
	if checksum == schemas.ChecksumCRC32C {
		return crc32.New(crc32.MakeTable(crc32.Castagnoli))
	}
	return sha256.New()
}

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
