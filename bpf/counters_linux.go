//go:build amd64 || arm64

package bpf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// Stats are the counters of the probes, summed over CPUs and programs.
// Seen == Emitted + Dropped holds at any quiet moment.
type Stats struct {
	Seen, Emitted, Dropped uint64
	DroppedByOp            map[string]uint64 // the parts of Dropped, by operation
	ScratchMissing         uint64
	CompatUnmapped         uint64
	IOUringUnmapped        uint64
	RecursionMisses        uint64            // runs that the kernel skipped, of probes without copies
	CoveredMisses          uint64            // likewise, of probes with copies
	Lost                   uint64            // events of probes with copies that no copy saw
	Foreign                uint64            // network calls of tasks outside, on sockets of the scope
	SharedArguments        uint64            // calls whose structure or address in memory others could change and change back
	Received               uint64            // descriptors that came from other processes
	Missed                 map[string]uint64 // the parts of RecursionMisses and Lost, by probe
	// SkippedByAll is, of probes with copies, how many runs were skipped of the copy that
	// lost the fewest: no more events than that were missed, anywhere on the machine.
	SkippedByAll map[string]uint64

	rings uint64 // calls of the scope that make and use io_uring
}

// Stats reads the counters. After Quiet they are final.
func (s *Session) Stats() (Stats, error) {
	out := Stats{DroppedByOp: map[string]uint64{}, Missed: map[string]uint64{}, SkippedByAll: map[string]uint64{}}
	out.IOUringUnmapped = s.unfinished() // first: another program's request can take the place of one, which is then in the counters
	for slot := range uint32(slots) {
		rows, err := s.counters(slot)
		if err != nil {
			return out, fmt.Errorf("reading counters: %w", err)
		}
		for _, c := range rows {
			out.Seen += c.Seen
			out.Emitted += c.Emitted
			out.Dropped += c.Dropped
			out.ScratchMissing += c.ScratchMissing
			out.CompatUnmapped += c.CompatUnmapped
			out.IOUringUnmapped += c.IoUringUnmapped
			out.Lost += c.Missed
			out.missed(copiedSlots[slot], c.Missed)
			out.rings += c.Rings
			out.Foreign += c.Foreign
			out.SharedArguments += c.SharedArguments
			out.Received += c.Received
		}
	}
	for op := 1; op < len(opNames); op++ {
		n, err := s.dropsOf(uint32(op))
		if err != nil {
			return out, fmt.Errorf("reading drops: %w", err)
		}
		if n > 0 {
			out.DroppedByOp[opNames[op]] += n
		}
	}
	return out, s.skipped(&out)
}

// counters are those of a program, by CPU.
func (s *Session) counters(slot uint32) (rows []objects.KernelCounters, err error) {
	if s.set != nil {
		return s.countersOfMember(slot)
	}
	err = s.coll[0].Maps["counters"].Lookup(slot, &rows)
	return rows, err
}

// dropsOf is how many records of an operation were lost.
func (s *Session) dropsOf(op uint32) (n uint64, err error) {
	if s.set != nil {
		return s.dropsOfMember(op)
	}
	err = s.coll[0].Maps[objects.KernelMapDrops].Lookup(op, &n)
	return n, err
}

// skipped reads how many runs of each program the kernel skipped.
func (s *Session) skipped(out *Stats) error {
	names := s.programNames()
	for _, p := range s.progs {
		st, err := p.Stats()
		if err != nil {
			return fmt.Errorf("reading recursion misses: %w", err)
		}
		name, n := names[p], st.RecursionMisses-s.member.misses[p]
		if slices.Contains(objectPrograms, name) {
			continue
		}
		if !s.copies.has(name) {
			out.RecursionMisses += n
			out.missed(name, n)
			continue
		}
		out.CoveredMisses += n
		probe := Probe(name)
		if least, there := out.SkippedByAll[probe]; !there || n < least {
			out.SkippedByAll[probe] = n
		}
	}
	out.missedUnmarked()
	return nil
}

// missedUnmarked adds the requests of io_uring and the signals that all copies of a probe were
// skipped for. No mark tells whose they were: only a run that does not use io_uring has missed
// none of its requests.
func (st *Stats) missedUnmarked() {
	for _, program := range unmarked {
		if st.rings == 0 && program != objects.GuardProgOnSignal {
			continue
		}
		n := st.SkippedByAll[Probe(program)]
		st.Lost += n
		st.missed(program, n)
	}
}

func (s *Session) programNames() map[*ebpf.Program]string {
	names := map[*ebpf.Program]string{}
	if s.set != nil {
		for name, p := range s.set.progs {
			names[p] = programOfCopy(name)
		}
	}
	for _, c := range s.coll {
		for name, p := range c.Programs {
			names[p] = name
		}
	}
	return names
}

func (st *Stats) missed(program string, n uint64) {
	if n > 0 {
		st.Missed[Probe(program)] += n
	}
}

// MissedExits adds the ends of tasks that no copy saw, when so many tasks were not seen to
// end. Nobody looks for the end of a task after it, so the probes cannot count these.
func (st *Stats) MissedExits(unended uint64) {
	n := min(unended, st.SkippedByAll[Probe(objects.KernelProgOnTaskExit)])
	st.Lost += n
	st.missed(objects.KernelProgOnTaskExit, n)
}

// Probe is the name of a probe in the counters, from its program's name in the C source.
func Probe(program string) string { return strings.TrimPrefix(program, "on_") }

// slots is SLOTS of record.h.
const slots = 16
