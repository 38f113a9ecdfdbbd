//go:build amd64 || arm64

package bpf

import (
	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas"
)

// What was counted and told for a run that shares probes: what is there now, less what was there when it began.

// countersOfMember are a program's counters since the run began, by CPU.
func (s *Session) countersOfMember(slot uint32) ([]objects.KernelCounters, error) {
	var now []objects.KernelSharedCounters
	if err := s.set.maps[objects.KernelMapCounters].Lookup(s.slotKey(slot), &now); err != nil {
		return nil, err
	}
	rows := make([]objects.KernelCounters, len(now))
	for cpu, n := range now {
		b := s.member.before[slot][cpu]
		rows[cpu] = objects.KernelCounters{Seen: n.Seen - b.Seen, Emitted: n.Emitted - b.Emitted, Dropped: n.Dropped - b.Dropped,
			ScratchMissing: n.ScratchMissing - b.ScratchMissing, CompatUnmapped: n.CompatUnmapped - b.CompatUnmapped,
			IoUringUnmapped: n.IoUringUnmapped - b.IoUringUnmapped, Missed: n.Missed - b.Missed, Rings: n.Rings - b.Rings,
			Foreign: n.Foreign - b.Foreign, SharedArguments: n.SharedArguments - b.SharedArguments, Received: n.Received - b.Received}
	}
	return rows, nil
}

func (s *Session) dropsOfMember(op uint32) (n uint64, err error) {
	err = s.set.maps[objects.KernelMapDrops].Lookup(s.dropKey(op), &n)
	return n - s.member.drops[op], err
}

// FirstSeq is what cpu_seq of a program's records on a CPU began with: earlier runs in the same place counted before.
func (s *Session) FirstSeq(probe uint8, cpu uint32) uint64 {
	if s.set == nil || int(probe) >= slots || int(cpu) >= len(s.member.before[probe]) {
		return 0
	}
	return s.member.before[probe][cpu].Seen
}

// Shares reports whether the session uses probes that other runs use too.
func (s *Session) Shares() bool { return s.set != nil }

// alarmsOfMember adds what programs of the scope did, and what programs of any run did to what all share.
func (s *Session) alarmsOfMember(out map[string]uint64) {
	var a objects.KernelSharedAlarmsOfRun
	err := s.set.maps[objects.KernelMapAlarms].Lookup(s.member.run-1, &a)
	touched, err2 := s.set.touched()
	if err != nil || err2 != nil {
		out[schemas.InterferenceBPF]++ // nobody else could have closed it
		return
	}
	for kind, n := range a.Of {
		n -= s.member.alarms[kind]
		if kind == alarmReach {
			n = s.oursAmong(a.Reached[:], a.Of[kind], n)
		}
		if n > 0 && kind > 0 && kind < len(alarmKinds) {
			out[alarmKinds[kind]] += n
		}
	}
	bpf := out[schemas.InterferenceBPF]
	if touched -= s.member.touched; touched > bpf { // by a program of another run
		out[schemas.InterferenceBPF] += touched - bpf
	}
}

// oursAmong counts the runner's among the last n processes that were reached. Of those that are not there any more, each is.
func (s *Session) oursAmong(last []int32, end, n uint64) (found uint64) {
	ours := s.threads()
	for i := end - n; i < end; i++ {
		if size := uint64(len(last)); end-i > size || ours(int(last[i%size])) {
			found++
		}
	}
	return found
}
