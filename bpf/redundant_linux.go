//go:build amd64 || arm64

package bpf

import (
	"fmt"
	"slices"
	"sync"

	"github.com/cilium/ebpf"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// Where a task can be preempted inside a program, several copies of the program share a
// mark per task (probes/marks.h): the copy that runs first does the work. A task is in one
// copy at a time. So as many copies as a CPU has tasks that take turns miss nothing. With
// fewer, an event is missed if every copy has a preempted task inside. The marks count that.
// On Linux 7.3 with two CPUs, sixteen tasks that do nothing but open files missed some in six runs of
// ten with four copies, and in none of twenty with six (check/opens-16 of testdata/kernels, emulated).
// Each copy at the end of calls costs every call of the machine a little.
// A mark cannot tell a call from the next one of the same number if no copy at the entry ran
// in between, and the copies that ran at the two ends do not overlap. schemas/LIMITS.md names it.
const (
	probeCopies = 6 // PROBE_COPIES of probes/record.h
	smallCopies = 3 // SMALL_COPIES: of on_sys_enter and on_signal, which are short: tasks are rarely preempted inside; and of io_uring's
)

// Copies says which probes get copies.
type Copies int

// Values of Copies.
const (
	CopiesAuto Copies = iota // those in which a task can be preempted on this kernel
	CopiesOff
	CopiesOn // all that can have copies
)

// copySet are the probes with copies, by the two kinds of hooks.
type copySet struct{ tasks, calls bool }

func chooseCopies(c Copies, p Preemption) copySet {
	if c == CopiesAuto {
		return copySet{p.Tasks, p.Calls}
	}
	return copySet{c == CopiesOn, c == CopiesOn}
}

func (c copySet) any() bool { return c.tasks || c.calls }

// scratchRecords is how many records a CPU builds at once, as scratch_key of probes/maps.h counts them.
func (c copySet) scratchRecords() uint32 {
	if c.any() {
		return scratchesOfMany*probeCopies + (scratches-scratchesOfMany)*smallCopies
	}
	return scratches
}

// The programs with copies, by the kind of their hook.
var (
	taskCopies = []string{objects.KernelProgOnExec, objects.KernelProgOnFork, objects.KernelProgOnTaskExit}
	callCopies = []string{objects.KernelProgOnSysEnter, objects.KernelProgOnSysExit}
)

// The programs of io_uring, of which a kernel has one, one, and all. They get copies where the tasks have.
var (
	ringSubmits   = []string{objects.UringProgOnSubmitReq, objects.UringProgOnSubmitSqe}
	ringCompletes = []string{objects.UringProgOnCompleteCqe, objects.UringProgOnCompleteRes}
	ringOthers    = []string{objects.UringProgOnReqFailed, objects.UringProgOnQueueAsync, objects.UringProgOnFailLink}
)

// copiedSlots are the programs whose missed events are counted, by their slot (SLOT_* of
// record.h).
var copiedSlots = [slots]string{objects.KernelProgOnSysExit, objects.KernelProgOnExec, objects.KernelProgOnFork, objects.KernelProgOnTaskExit}

// has reports whether a program has copies.
func (c copySet) has(program string) bool {
	for _, kind := range c.kinds() {
		for _, name := range kind {
			if name == program {
				return true
			}
		}
	}
	return c.tasks && slices.Contains(unmarked, program)
}

// unmarked are programs with copies, without marks that tell whose events no copy saw.
var unmarked = slices.Concat(ringSubmits, ringCompletes, ringOthers, []string{objects.GuardProgOnSignal})

func (c copySet) kinds() (kinds [][]string) {
	if c.tasks {
		kinds = append(kinds, taskCopies)
	}
	if c.calls {
		kinds = append(kinds, callCopies)
	}
	return kinds
}

// programs are those of one copy, in the order in which they are attached: marks are
// opened at the entry before they are looked for at the exit.
func (c copySet) programs(copy uint32) (names []string) {
	for _, kind := range c.kinds() {
		for _, name := range kind {
			first := copy == 0 // the base object has it
			last := name == objects.KernelProgOnSysEnter && copy >= smallCopies
			if !first && !last {
				names = append(names, name)
			}
		}
	}
	return names
}

// spec is what the copies are made from: to read the object once more takes longer.
func (c copySet) spec(object *ebpf.CollectionSpec) *ebpf.CollectionSpec {
	if !c.any() {
		return nil
	}
	spec := pick(object)
	for name := range spec.Programs {
		if !c.has(name) {
			delete(spec.Programs, name)
		}
	}
	return spec
}

// body is the program that does the work for the copies of another (probes/marks.h), the map through which they go on there, and
// the program that does all of it where there are no copies.
type body struct{ program, array, alone string }

var bodies = map[string]body{
	objects.KernelProgOnSysEnter:   {objects.KernelProgBodySysEnter, objects.KernelMapSysEnterBody, objects.KernelProgAloneSysEnter},
	objects.KernelProgOnSysExit:    {objects.KernelProgBodySysExit, objects.KernelMapSysExitBody, objects.KernelProgAloneSysExit},
	objects.KernelProgOnFork:       {objects.KernelProgBodyFork, objects.KernelMapForkBody, objects.KernelProgAloneFork},
	objects.KernelProgOnExec:       {objects.KernelProgBodyExec, objects.KernelMapExecBody, objects.KernelProgAloneExec},
	objects.UringProgOnSubmitReq:   {objects.UringProgBodySubmitReq, objects.UringMapSubmitBody, objects.UringProgAloneSubmitReq},
	objects.UringProgOnSubmitSqe:   {objects.UringProgBodySubmitSqe, objects.UringMapSubmitBody, objects.UringProgAloneSubmitSqe},
	objects.UringProgOnReqFailed:   {objects.UringProgBodyReqFailed, objects.UringMapFailedBody, objects.UringProgAloneReqFailed},
	objects.UringProgOnCompleteCqe: {objects.UringProgBodyCompleteCqe, objects.UringMapCompleteBody, objects.UringProgAloneCompleteCqe},
	objects.UringProgOnCompleteRes: {objects.UringProgBodyCompleteRes, objects.UringMapCompleteBody, objects.UringProgAloneCompleteRes},
}

// loadWithBodies loads the first copy of programs, and with it the bodies of those that have
// copies. Only these are attached: a copy calls its body.
func (s *Session) loadWithBodies(spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map, names ...string) (*ebpf.Collection, error) {
	keep := slices.Clone(names)
	for _, name := range names {
		if b, there := bodies[name]; there && s.copies.has(name) {
			keep = append(keep, b.program)
		}
	}
	coll, err := s.load(spec, shared, keep...)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		b := bodies[name]
		if p := coll.Programs[b.program]; p != nil {
			if err := coll.Maps[b.array].Put(uint32(0), p); err != nil {
				return nil, fmt.Errorf("naming the body of %s: %w", name, err)
			}
		}
	}
	return coll, nil
}

// loadCopies loads the copies of the programs whose first copy is in the base object.
func (s *Session) loadCopies(shared map[string]*ebpf.Map) (colls [probeCopies]*ebpf.Collection, err error) {
	var errs [probeCopies]error
	var wg sync.WaitGroup
	for i := range uint32(probeCopies) {
		if names := s.copies.programs(i); len(names) > 0 {
			wg.Go(func() { colls[i], errs[i] = loadCopy(s, i, shared, names) })
		}
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return colls, fmt.Errorf("copy %d of the probes: %w", i, err)
		}
	}
	return colls, nil
}

// attachCopies attaches the copies. They run in the order in which they are attached.
func (s *Session) attachCopies(colls [probeCopies]*ebpf.Collection) error {
	for i, coll := range colls {
		for _, name := range s.copies.programs(uint32(i)) {
			if err := s.trace(coll.Programs[name]); err != nil {
				return fmt.Errorf("copy %d of %s: %w", i, name, err)
			}
		}
	}
	return nil
}

// loadCopy is a variable so that a test can see what happens when it fails.
var loadCopy = (*Session).loadCopy

func (s *Session) loadCopy(copy uint32, shared map[string]*ebpf.Map, names []string) (*ebpf.Collection, error) {
	spec := pick(s.copySpec)
	if err := spec.Variables["copy"].Set(copy); err != nil {
		return nil, err
	}
	return s.load(spec, shared, names...)
}
