package gateway

import (
	"crypto/sha256"
	"fmt"
	"hash"

	"github.com/runner-evidence/runner/cmd/internal/record"
	"github.com/runner-evidence/runner/schemas"
)

// body records the bytes of one direction. It never fails: what cannot be written ends the record, not the exchange.
type body struct {
	g    *Gateway
	h    hash.Hash
	n    uint64
	blob *record.Blob
	off  bool // nothing is kept
}

func (g *Gateway) body() *body { return &body{g: g, h: sha256.New(), off: g.c.Blobs == nil} }

// Write takes the next bytes.
func (b *body) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b.h.Write(p)
	b.n += uint64(len(p))
	if b.off {
		return len(p), nil
	}
	var err error
	if b.blob == nil {
		b.blob, err = b.g.c.Blobs.Open()
	}
	if err == nil {
		_, err = b.blob.Write(p)
	}
	if err != nil {
		b.g.fail(fmt.Errorf("recording a body: %w", err))
		b.off = true
	}
	return len(p), nil
}

// message ends the recording, and says what it was.
func (b *body) message() schemas.NetMessage {
	if b.n == 0 {
		return schemas.NetMessage{}
	}
	var sum [32]byte
	b.h.Sum(sum[:0])
	if b.blob != nil {
		if err := b.blob.Done(&sum); err != nil {
			b.g.fail(err)
		}
	}
	return schemas.NetMessage{Bytes: b.n, SHA256: schemas.DigestFrom(b.h)}
}
