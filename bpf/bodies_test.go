//go:build linux && (amd64 || arm64)

package bpf

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// Every body runs more than once on a CPU, so none may have its stack there (STACK_OF_TASK of
// marks.h). And each is the body of a program that can have copies.
func TestBodies(t *testing.T) {
	programs := map[string]bool{}
	for _, load := range []specFunc{objects.LoadKernel, objects.LoadKernelWhole, objects.LoadUring, objects.LoadUringWhole, objects.LoadKernelSharedCopies, objects.LoadUringSharedCopies} {
		spec, err := load()
		testkit.Must(t, err)
		for name, p := range spec.Programs {
			if !strings.HasPrefix(name, "body_") {
				continue
			}
			probe := "on_" + strings.TrimPrefix(name, "body_")
			programs[name] = true
			b := bodies[probe]
			if b.program != name || spec.Maps[b.array] == nil || spec.Programs[probe] == nil || spec.Programs[b.alone] == nil {
				t.Errorf("%s: the body of %s is %+v", name, probe, b)
			}
			if !(copySet{true, true}).has(probe) {
				t.Errorf("%s has a body and no copies", probe)
			}
			calls := false
			for it := p.Instructions.Iterate(); it.Next(); {
				calls = calls || it.Ins.IsBuiltinCall() && it.Ins.Constant == int64(asm.FnTailCall)
			}
			if !calls {
				t.Errorf("%s has no tail call: it may get a stack per CPU", name)
			}
		}
	}
	if len(programs) != len(bodies) {
		t.Errorf("%d bodies, and a table of %d", len(programs), len(bodies))
	}
}
