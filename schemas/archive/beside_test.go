package archive

import (
	"crypto/sha256"
	"math/rand/v2"
	"testing"
)

// TestBeside: the digest is that of the bytes, whatever the pieces are and whoever makes it.
func TestBeside(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, size := range []int{0, 1, besideBlock - 1, besideBlock, besideBlock + 1, 5*besideBlock + 7, 20 * besideBlock} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		d, scratch := newBeside(), make([]byte, besideBlock*2)
		for rest := data; len(rest) > 0; {
			n := copy(scratch, rest[:min(len(rest), 1+r.IntN(len(scratch)))])
			d.write(scratch[:n])
			clear(scratch) // the caller's memory is its own again
			rest = rest[n:]
		}
		if got := d.sum().Sum(nil); [32]byte(got) != sha256.Sum256(data) {
			t.Errorf("%d bytes: another digest", size)
		}
		d.close()
	}
	d := newBeside() // one that is given up
	d.write(make([]byte, 10*besideBlock))
	d.close()
}
