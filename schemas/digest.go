package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
)

// digestPrefix names the function of a digest.
const digestPrefix = "sha256:"

// DigestOf is the digest of bytes as documents have it: "sha256:" and 64 hexadecimal digits.
func DigestOf[T []byte | string](b T) string {
	sum := sha256.Sum256([]byte(b))
	return digestPrefix + hex.EncodeToString(sum[:])
}

// DigestFrom is the digest of what was written to a SHA-256.
func DigestFrom(h hash.Hash) string { return digestPrefix + hex.EncodeToString(h.Sum(nil)) }

// DigestAll reads all that a reader has, and returns its digest as documents have it, and how many bytes it was.
func DigestAll(r io.Reader) (string, uint64, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return DigestFrom(h), uint64(n), err
}
