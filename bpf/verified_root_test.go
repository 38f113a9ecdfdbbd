//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The bounds of how many instructions the verifier follows, for one program and for all. Most of the time
// of a start is spent there, and a loop in the wrong place takes ten times as many.
const (
	mostVerified       = 17_000
	mostVerifiedInAll  = 70_000
	mostVerifiedCopied = 72_000 // with six copies of a probe
	mostVerifiedInSet  = 86_000 // of copies that runs share: loaded once, and each knows whose event it is at
)

// The bounds of how many instructions the kernel is given. Linux 7.1 and later look at what each could do to each part of the
// stack, before they follow any: then most of the time of a start is spent on this number.
const (
	mostGiven       = 37_000
	mostGivenCopied = 46_000
	mostGivenInSet  = 55_000
)

func TestVerifiedInstructions(t *testing.T) {
	for _, redundant := range []bool{false, true} {
		t.Run(fmt.Sprint(redundant), func(t *testing.T) {
			var given atomic.Uint64
			newCollection = func(spec *ebpf.CollectionSpec, opts ebpf.CollectionOptions) (*ebpf.Collection, error) {
				for _, p := range spec.Programs {
					given.Add(p.Instructions.Size() / asm.InstructionSize)
				}
				return ebpf.NewCollectionWithOptions(spec, opts)
			}
			defer func() { newCollection = ebpf.NewCollectionWithOptions }()
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
			most, bound := uint32(mostVerifiedInAll), uint64(mostGiven)
			switch {
			case s.set != nil && s.copies.any():
				most, bound = mostVerifiedInSet, mostGivenInSet
			case s.copies.any():
				most, bound = mostVerifiedCopied, mostGivenCopied
			}
			if n := given.Load(); n > bound {
				t.Errorf("the kernel was given %d instructions, at most %d are expected", n, bound)
			}
			if t.Logf("%d instructions in all, of %d given", sum, given.Load()); sum > most {
				t.Errorf("at most %d are expected", most)
			}
		})
	}
}
