//go:build linux

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// pseudoBTFID marks a 64-bit load of a kernel variable's address (BPF_PSEUDO_BTF_ID).
const pseudoBTFID = 3

// readPreemptCount are the instructions that read this CPU's preemption count into R0. It
// is a per-CPU variable, and from 6.2 to 6.14 a member of one.
func readPreemptCount(kernel *btf.Spec) (asm.Instructions, error) {
	var v *btf.Var
	offset := int16(0)
	err := typeByName(kernel, "__preempt_count", &v)
	if errors.Is(err, btf.ErrNotFound) {
		if err = typeByName(kernel, "pcpu_hot", &v); err == nil {
			offset, err = memberOffset(v.Type, "preempt_count")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("no preemption count in the kernel's types: %w", err)
	}
	id, err := kernel.TypeID(v)
	if err != nil {
		return nil, err
	}
	return asm.Instructions{
		{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R1, Src: pseudoBTFID, Constant: int64(id)},
		asm.FnThisCpuPtr.Call(),
		asm.LoadMem(asm.R0, asm.R0, offset, asm.Word),
	}, nil
}
