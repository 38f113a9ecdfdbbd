package closure

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// marks are what is known of texts that were taken out: their digests, if they have one.
type marks struct {
	plain   uint64 // without a digest
	digests uint64
	first   string
	sum     hash.Hash // over all digests, each followed by LF
}

// add takes in the marks of a text.
func (m *marks) add(text string) {
	for {
		_, rest, there := strings.Cut(text, schemas.RedactionMark)
		if !there {
			return
		}
		mark, after, _ := strings.Cut(rest, schemas.RedactionEnd)
		if _, digest, keyed := strings.Cut(mark, schemas.RedactionDigest); keyed {
			m.digest(digest)
		} else {
			m.plain++
		}
		text = after
	}
}

func (m *marks) digest(text string) {
	if m.digests == 0 {
		m.first, m.sum = text, sha256.New()
	}
	m.digests++
	m.sum.Write([]byte(text + "\n"))
}

// commitment commits to all texts that were taken out.
func (m *marks) commitment() *schemas.Commitment {
	if m.digests == 1 {
		return &schemas.Commitment{Alg: schemas.CommitmentHMAC, Digest: m.first}
	}
	return &schemas.Commitment{Alg: schemas.CommitmentHMACs, Digest: hex.EncodeToString(m.sum.Sum(nil))}
}
