//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// Preemption says at which hooks a task can be preempted while a probe runs for it. Since
// Linux 7.0 that is so at ordinary tracepoints, since 7.2 also at system calls. As long as
// the task is preempted, the kernel skips that program for every other task on the CPU:
// events are missed without a ring drop.
type Preemption struct {
	Tasks bool  // at ordinary tracepoints: exec, fork, exit, io_uring
	Calls bool  // at the entry and the exit of system calls
	Err   error // why it could not be found out; then both are true
}

// String is the value of the fact preemption.
func (p Preemption) String() string {
	switch {
	case p.Err != nil:
		text, _, _ := strings.Cut(p.Err.Error(), "\n")
		return schemas.PreemptionUnknown(text)
	case p.Tasks && p.Calls:
		return schemas.PreemptionTasksCalls
	case p.Tasks:
		return schemas.PreemptionTasks
	case p.Calls:
		return schemas.PreemptionCalls
	}
	return schemas.PreemptionNone
}

// tries are the hooks that are tried, one of each kind.
var tries = [...]string{"sched_process_wait", "sys_exit"}

// DetectPreemption runs a tiny program at a hook of each kind and looks at how it runs.
//
// The count by which the kernel recognizes a program that is already running is one per
// CPU. So a task inside a program must stay on its CPU, for which preemption or migration
// is off. If migration is on, the task cannot be preempted. Otherwise the preemption count
// decides. What cannot be found out counts as preemptible: a copy of a probe costs a little
// time, and a missed event makes the record incomplete.
func DetectPreemption(types *kernelBTF) Preemption {
	kernel, err := types.Kernel()
	if err != nil {
		return Preemption{true, true, err}
	}
	p := tryPreemption(kernel, types, nil)
	if !p.Tasks && !p.Calls {
		return p
	}
	if count, err := readPreemptCount(kernel); err == nil {
		if q := tryPreemption(kernel, types, count); q.Err == nil {
			return q
		}
	}
	return p
}

// tryPreemption tries all hooks, with the instructions that read the preemption count.
func tryPreemption(kernel *btf.Spec, types *kernelBTF, count asm.Instructions) Preemption {
	found, err := runTries(kernel, types, count)
	if err != nil {
		return Preemption{true, true, err}
	}
	return Preemption{Tasks: found[0], Calls: found[1]}
}

func runTries(kernel *btf.Spec, types *kernelBTF, count asm.Instructions) (found [len(tries)]bool, err error) {
	var task *btf.Struct
	if err := typeByName(kernel, "task_struct", &task); err != nil {
		return found, err
	}
	pinned, err := memberOffset(task, "migration_disabled")
	if err != nil {
		return found, err
	}
	spec := &ebpf.CollectionSpec{
		Maps:     map[string]*ebpf.MapSpec{"runs": {Type: ebpf.Array, KeySize: 4, ValueSize: 16, MaxEntries: uint32(len(tries))}},
		Programs: map[string]*ebpf.ProgramSpec{},
	}
	for i, hook := range tries {
		spec.Programs[hook] = &ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: hook,
			License: "Dual BSD/GPL", Instructions: noteRun(int64(i), pinned, count)}
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: types.Cache()})
	if err != nil {
		return found, err
	}
	defer coll.Close()
	for _, hook := range tries {
		l, err := link.AttachTracing(link.TracingOptions{Program: coll.Programs[hook]})
		if err != nil {
			return found, fmt.Errorf("trying %s: %w", hook, err)
		}
		defer l.Close()
	}
	// A system call that passes both hooks. No process is its own child, so it does nothing.
	if _, err := unix.Wait4(os.Getpid(), nil, unix.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
		return found, fmt.Errorf("waiting for oneself: %w", err)
	}
	for i := range tries {
		var n struct{ Runs, Preemptible uint64 }
		if err := coll.Maps["runs"].Lookup(uint32(i), &n); err != nil {
			return found, err
		}
		if n.Runs == 0 {
			return found, fmt.Errorf("the program at %s did not run", tries[i])
		}
		found[i] = n.Preemptible > 0
	}
	return found, nil
}

// noteRun is the program. It adds to an entry of the map runs: one run and, if migration is
// off and the preemption count is 0, one that could have been preempted. Without
// instructions that read the count into R0, only migration decides.
func noteRun(entry int64, migrationDisabled int16, count asm.Instructions) asm.Instructions {
	p := append(slices.Clone(count), asm.Mov.Imm(asm.R7, 0))
	if count != nil {
		p = append(p, asm.Mov.Reg(asm.R7, asm.R0), asm.And.Imm(asm.R7, 0x7fffffff)) // x86 keeps a flag in the highest bit
	}
	return append(p,
		asm.FnGetCurrentTaskBtf.Call(),
		asm.LoadMem(asm.R6, asm.R0, migrationDisabled, asm.Half),
		asm.StoreImm(asm.RFP, -4, entry, asm.Word),
		asm.LoadMapPtr(asm.R1, 0).WithReference("runs"),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.JEq.Imm(asm.R6, 0, "out"),
		asm.JNE.Imm(asm.R7, 0, "out"),
		asm.Add.Imm(asm.R0, 8),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
		asm.Return(),
	)
}

// memberOffset is where a member is, by the names on the way to it. Structures and unions
// without a name are looked into.
func memberOffset(t btf.Type, names ...string) (int16, error) {
	offset := uint32(0)
	for _, name := range names {
		m, at := findMember(t, name)
		if m == nil || offset+at > 1<<15-1 {
			return 0, fmt.Errorf("%s has no member %s in reach", t.TypeName(), name)
		}
		offset, t = offset+at, m
	}
	return int16(offset), nil
}

func findMember(t btf.Type, name string) (btf.Type, uint32) {
	var members []btf.Member
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Struct:
		members = t.Members
	case *btf.Union:
		members = t.Members
	}
	for _, m := range members {
		if m.Name == name {
			return m.Type, m.Offset.Bytes()
		}
		if m.Name == "" {
			if in, at := findMember(m.Type, name); in != nil {
				return in, m.Offset.Bytes() + at
			}
		}
	}
	return nil, 0
}
