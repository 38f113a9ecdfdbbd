//go:build linux && (amd64 || arm64)

package bpf

import (
	"reflect"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// TestRecordLayout: the generated Go type comes from the object's BTF. The decoder's
// offsets must be the compiler's, and the decoder must read every field.
func TestRecordLayout(t *testing.T) {
	read := map[string]int{
		"Len": offLen, "Op": offOp, "Source": offSrc, "Ktime": offKtime, "Cgid": offCgid, "Tgid": offTgid, "Tid": offTid,
		"Cpu": offCPU, "Seq": offSeq, "Ret": offRet, "Flags": offFlags, "Resolve": offResol, "Mode": offMode, "Marks": offMarks,
		"I_mode": offIMode, "Ulen1": offULen1, "Ulen2": offULen2, "Alen": offALen, "Clen1": offCLen1, "Clen2": offCLen2,
		"Aux1": offAux1, "Aux2": offAux2,
	}
	record := reflect.TypeOf(objects.KernelScratch{}.R)
	if record.Size() != recSize {
		t.Errorf("the object's record has %d bytes, the decoder's %d", record.Size(), recSize)
	}
	for i := range record.NumField() {
		f := record.Field(i)
		if f.Name == "_" || strings.HasPrefix(f.Name, "Pad") {
			continue
		}
		at, ok := read[f.Name]
		if !ok {
			t.Errorf("the decoder does not read %s", f.Name)
		} else if int(f.Offset) != at {
			t.Errorf("%s is at %d in the object, at %d in the decoder", f.Name, f.Offset, at)
		}
		delete(read, f.Name)
	}
	for name := range read {
		t.Errorf("the record has no field %s", name)
	}
}

// Every name of the decoder is an operation of the contract.
func TestOpNames(t *testing.T) {
	if n := len(opNames); n != opBlocked+1 {
		t.Fatalf("%d names for operations up to %d", n, opMove)
	}
}
