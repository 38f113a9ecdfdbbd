//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The bounds of how many instructions the verifier follows, for one program and for all. Most of the time
// of a start is spent there, and a loop in the wrong place takes ten times as many.
const (
	mostVerified      = 17_000
	mostVerifiedInAll = 77_000
	mostVerifiedInSet = 91_000 // of copies that runs share: loaded once, and each knows whose event it is at
)

func TestVerifiedInstructions(t *testing.T) {
	for _, redundant := range []bool{false, true} {
		t.Run(fmt.Sprint(redundant), func(t *testing.T) {
			s := attachOwn(t, redundant)
			sum := uint32(0)
			for p, name := range s.programNames() {
				info, err := p.Info()
				testkit.Must(t, err)
				n, ok := info.VerifiedInstructions()
				if !ok {
					testkit.Skip(t, "how much the verifier follows", "Linux 5.16 and later say so")
				}
				if sum += n; n > mostVerified {
					t.Errorf("%s: %d instructions, at most %d", name, n, mostVerified)
				}
			}
			most := uint32(mostVerifiedInAll)
			if s.set != nil && s.copies.any() {
				most = mostVerifiedInSet
			}
			if t.Logf("%d instructions in all", sum); sum > most {
				t.Errorf("at most %d are expected", most)
			}
		})
	}
}
