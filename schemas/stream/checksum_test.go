package stream

import (
	"bytes"
	"encoding/hex"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// However the bytes of a stream come, and however many they are, their checksum is that of the library and of RFC 3720, B.4.
func TestCRC32CInParts(t *testing.T) {
	for in, want := range map[string]string{string(make([]byte, 32)): "8a9136aa", string(bytes.Repeat([]byte{0xff}, 32)): "62a8ab43", "123456789": "e3069283", "": "00000000"} {
		h := newHash(schemas.ChecksumCRC32C)
		h.Write([]byte(in))
		if got := hex.EncodeToString(h.Sum(nil)); got != want {
			t.Errorf("%q: %s, expected %s", in, got, want)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		h, want := newHash(schemas.ChecksumCRC32C), crc32.New(crc32.MakeTable(crc32.Castagnoli))
		for range rnd.IntN(8) {
			b := make([]byte, rnd.IntN(2*shortStream))
			for i := range b {
				b[i] = byte(rnd.Uint32())
			}
			h.Write(b)
			want.Write(b)
			if got, want := h.Sum(nil), want.Sum(nil); !bytes.Equal(got, want) {
				t.Fatalf("%x, expected %x", got, want)
			}
		}
	}
}
