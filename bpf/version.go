package bpf

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
)

//go:embed internal/objects/objects.sha256
var digests []byte

// ObjectsDigest names the committed BPF objects: the SHA-256 of their lines in objects.sha256.
//
//	grep '_bpfel.o$' bpf/internal/objects/objects.sha256 | sha256sum
func ObjectsDigest() string {
	h := sha256.New()
	for line := range bytes.Lines(digests) {
		if bytes.HasSuffix(line, []byte("_bpfel.o\n")) {
			h.Write(line)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
