package schemas

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A parser that has read a line some times takes no other line for it, whatever is changed, and where.
func TestKernelAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	const bytesOf = `",:{}[]\-.eE+09a` + "\x00\x1f\x7f\xc3\xa9\xff "
	for range 300 {
		e := randomKernel(r)
		line := e.AppendJSON(nil, testRun)
		for range 20 {
			bothWays(t, line) // from the third time on it is known
			changed := bytes.Clone(line)
			at := r.IntN(len(line))
			switch r.IntN(3) {
			case 0:
				changed[at] = bytesOf[r.IntN(len(bytesOf))]
			case 1:
				changed = append(changed[:at], changed[at+1:]...)
			default:
				changed = append(changed[:at:at], append([]byte{bytesOf[r.IntN(len(bytesOf))]}, line[at:]...)...)
			}
			bothWays(t, changed)
			e.Seq = r.Uint64() >> r.IntN(64)
			line = e.AppendJSON(nil, testRun)
		}
	}
}
