//go:build linux

package bpf

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// readPreemptCount are the instructions that read this CPU's preemption count into R0: here
// it is kept with the running task.
func readPreemptCount(kernel *btf.Spec) (asm.Instructions, error) {
	var task *btf.Struct
	err := typeByName(kernel, "task_struct", &task)
	offset := int16(0)
	if err == nil {
		offset, err = memberOffset(task, "thread_info", "preempt", "count")
	}
	if err != nil {
		return nil, fmt.Errorf("no preemption count in the kernel's types: %w", err)
	}
	return asm.Instructions{
		asm.FnGetCurrentTaskBtf.Call(),
		asm.LoadMem(asm.R0, asm.R0, offset, asm.Word),
	}, nil
}
