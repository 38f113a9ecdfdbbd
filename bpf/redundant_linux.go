//go:build amd64 || arm64

package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// Since Linux 7.2, when a task is preempted inside a tracing program, the kernel skips
// that program for every other task on the CPU, and events are lost without a ring drop.
// Redundant mode attaches several copies of the program, which share a mark per task: the
// copy that runs first does the work. Stats.Lost counts the calls that no copy saw.
const (
	redundantCopies = 4
	redundantEnters = 3
)

// attachRedundant adds the further copies of on_sys_exit (the base object holds
// the first) and the on_sys_enter programs that open the mark.
func (s *Session) attachRedundant(shared map[string]*ebpf.Map) error {
	s.copied = map[*ebpf.Program]bool{s.coll[0].Programs[objects.KernelProgOnSysExit]: true}
	for i := range uint32(redundantEnters) {
		if err := loadCopy(s, objects.KernelProgOnSysEnter, i, shared); err != nil {
			return fmt.Errorf("redundant copy %d of the entry probe: %w", i, err)
		}
	}
	for i := range uint32(redundantCopies - 1) {
		if err := loadCopy(s, objects.KernelProgOnSysExit, scratchCopy+i, shared); err != nil {
			return fmt.Errorf("redundant copy %d of the exit probe: %w", i, err)
		}
	}
	return nil
}

// loadCopy is a variable so that a test can see what happens when it fails.
var loadCopy = (*Session).copyOf

func (s *Session) copyOf(prog string, slot uint32, shared map[string]*ebpf.Map) error {
	spec, err := objects.LoadKernel()
	if err != nil {
		return err
	}
	if err := spec.Variables["redundant"].Set(true); err != nil {
		return err
	}
	if err := spec.Variables["scratch_slot"].Set(slot); err != nil {
		return err
	}
	coll, err := s.load(spec, shared, redundantCopies, prog)
	if err != nil {
		return err
	}
	s.copied[coll.Programs[prog]] = true
	return s.trace(coll.Programs[prog])
}

// NeedsRedundancy reports whether this kernel skips tracing programs of preempted
// tasks: measured on 7.2, not up to 7.1.
func NeedsRedundancy() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return true
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		return true
	}
	return major > 7 || major == 7 && minor >= 2
}
