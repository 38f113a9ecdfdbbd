//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas"
)

// TestRecordLayout: the generated Go type comes from the object's BTF. The decoder's
// offsets must be the compiler's, and the decoder must read every field.
func TestRecordLayout(t *testing.T) {
	read := map[string]int{
		"Len": offLen, "Op": offOp, "Source": offSrc, "Probe": offProbe, "Ktime": offKtime, "Cgid": offCgid, "Tgid": offTgid, "Tid": offTid,
		"Cpu": offCPU, "Seq": offSeq, "Ret": offRet, "Flags": offFlags, "Resolve": offResol, "Mode": offMode, "Marks": offMarks,
		"I_mode": offIMode, "Ulen1": offULen1, "Ulen2": offULen2, "Alen": offALen, "Clen1": offCLen1, "Clen2": offCLen2,
		"Aux1": offAux1, "Aux2": offAux2, "Args": offArgs,
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

// The decoder's names are those of the probes' enum, in its order, and exactly the
// operations of the contract.
func TestOpNames(t *testing.T) {
	b, err := os.ReadFile("probes/record.h")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "enum op {")
	text, _, _ = strings.Cut(text, "OPS =")
	var enum []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			enum = append(enum, strings.ToLower(strings.TrimPrefix(name, "OP_")))
		}
	}
	if want := append([]string{"none"}, opNames[1:]...); !slices.Equal(enum, want) {
		t.Errorf("the probes' operations are\n%q, the decoder's\n%q", enum, want)
	}
	if got, want := slices.Sorted(slices.Values(opNames[1:])), slices.Sorted(slices.Values(schemas.RawOps[:])); !slices.Equal(got, want) {
		t.Errorf("the decoder's operations are\n%q, the contract's\n%q", got, want)
	}
	for op, want := range map[int]string{opOpen: "open", opLastOpen: "tiocgptpeer", opExec: "exec", opConnect: "connect",
		opListen: "listen", opRename: "rename", opExecCheck: schemas.OpExecCheck, opUringOther: "io_uring_other", opFork: "fork", opExit: "exit", opMove: "move", opBlocked: "connect_blocked", opFile: "file_blocked"} {
		if opNames[op] != want {
			t.Errorf("operation %d is %s, expected %s", op, opNames[op], want)
		}
	}
}
