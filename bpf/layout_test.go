//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"
	"unsafe"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// The generated Go type comes from the object's BTF: the decoder's offsets must be
// the compiler's.
func TestRecordLayout(t *testing.T) {
	var s objects.KernelScratch
	r := &s.R
	at := func(p unsafe.Pointer) uintptr { return uintptr(p) - uintptr(unsafe.Pointer(r)) }
	for name, c := range map[string]struct {
		got  uintptr
		want int
	}{
		"size": {unsafe.Sizeof(*r), recSize}, "op": {at(unsafe.Pointer(&r.Op)), offOp}, "source": {at(unsafe.Pointer(&r.Source)), offSrc},
		"ktime": {at(unsafe.Pointer(&r.Ktime)), offKtime}, "cgid": {at(unsafe.Pointer(&r.Cgid)), offCgid},
		"tgid": {at(unsafe.Pointer(&r.Tgid)), offTgid}, "tid": {at(unsafe.Pointer(&r.Tid)), offTid},
		"cpu": {at(unsafe.Pointer(&r.Cpu)), offCPU}, "seq": {at(unsafe.Pointer(&r.Seq)), offSeq}, "ret": {at(unsafe.Pointer(&r.Ret)), offRet},
		"flags": {at(unsafe.Pointer(&r.Flags)), offFlags}, "resolve": {at(unsafe.Pointer(&r.Resolve)), offResol},
		"mode": {at(unsafe.Pointer(&r.Mode)), offMode}, "marks": {at(unsafe.Pointer(&r.Marks)), offMarks},
		"i_mode": {at(unsafe.Pointer(&r.I_mode)), offIMode}, "ulen1": {at(unsafe.Pointer(&r.Ulen1)), offULen1},
		"ulen2": {at(unsafe.Pointer(&r.Ulen2)), offULen2}, "alen": {at(unsafe.Pointer(&r.Alen)), offALen},
		"clen1": {at(unsafe.Pointer(&r.Clen1)), offCLen1}, "clen2": {at(unsafe.Pointer(&r.Clen2)), offCLen2},
		"aux1": {at(unsafe.Pointer(&r.Aux1)), offAux1}, "aux2": {at(unsafe.Pointer(&r.Aux2)), offAux2},
	} {
		if int(c.got) != c.want {
			t.Errorf("%s stands at %d in the object, at %d in the decoder", name, c.got, c.want)
		}
	}
}

// Every name of the decoder is an operation of the contract.
func TestOpNames(t *testing.T) {
	if n := len(opNames); n != opBlocked+1 {
		t.Fatalf("%d names for operations up to %d", n, opMove)
	}
}
