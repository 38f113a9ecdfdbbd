//go:build amd64 || arm64

package bpf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// How a place passes from one run to the next. When a run has ended, a program can still be at an event of it, from outside of its
// cgroup, and what it counts and tells goes to that place. The kernel says when none can be any more: it waits for that, for some
// milliseconds, before it is done with putting a map into another one. No run waits for it at its end. Each puts its ring there when it
// starts, and when it has ended, the places that others had left before are free without a doubt.

// What there still can be in a free place.
const (
	leftNothing  = iota
	leftPrograms // at an event of the run that was there
	leftRing     // and its ring: one at most, until the next run starts
)

// maxLeftRing is how large a ring is at most that is left for the next run to take away.
const maxLeftRing = 16 << 20 // bytes

// take takes a free place: of those that nothing is left in, the one that has been free for the longest time.
func (s *Session) take() error {
	set, own := s.set, &s.member
	var m objects.KernelSharedMember
	if err := set.maps[objects.KernelSharedMapMembers].Lookup(s.CgroupID, &m); err == nil {
		return errNested
	}
	all, err := set.places()
	if err != nil {
		return err
	}
	own.leaving = map[uint32]uint32{}
	var found objects.KernelSharedRun
	for run, r := range all {
		if r.CgroupId != 0 {
			continue
		}
		if r.Left != leftNothing {
			own.leaving[run] = r.Alive
		}
		if r.Left == leftRing {
			own.toTake = run
		}
		// The kernel counts up what tells that a run is there.
		if own.run == 0 || cmp.Or(cmp.Compare(min(r.Left, leftPrograms), min(found.Left, leftPrograms)), cmp.Compare(r.Alive, found.Alive), cmp.Compare(run, own.run)) < 0 {
			own.run, found = run, r
		}
	}
	if own.run == 0 {
		return errFull
	}
	own.waited = found.Left != leftNothing
	delete(own.leaving, own.run)
	return nil
}

// takeLeft takes away the ring that an earlier run has left.
func (s *Session) takeLeft() error {
	run := s.member.toTake
	if run == 0 || run == s.member.run { // where it puts its own, that one is gone
		return nil
	}
	err := s.takeRing(run)
	if err == nil {
		s.set.free(run, leftPrograms)
	}
	return err
}

// takeRing takes the ring out of a place. That the kernel then waits for its programs goes on in the background.
func (s *Session) takeRing(run uint32) error {
	done := make(chan error, 1)
	s.member.left.Go(func() {
		err := s.set.maps[objects.KernelSharedMapRings].Delete(run - 1)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			err = nil
		}
		done <- err
	})
	if err := s.set.awaitRing(run, 0, done); err != nil {
		return fmt.Errorf("taking a ring away: %w", err)
	}
	return nil
}

// awaitRing waits until a place has this ring, or with 0 none. done says how the call ended that puts it there.
func (set *probeSet) awaitRing(run, ring uint32, done <-chan error) error {
	// The kernel's sleep: that of package time is rounded up to a millisecond when nothing else goes on.
	for end := time.Now().Add(sharePatience); ; unix.Nanosleep(&unix.Timespec{Nsec: 50_000}, nil) {
		var has uint32
		err := set.maps[objects.KernelSharedMapRings].Lookup(run-1, &has)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			has, err = 0, nil
		}
		if err == nil && has == ring {
			return nil
		}
		select {
		case err := <-done:
			if err != nil {
				return err
			}
		default:
		}
		if time.Now().After(end) {
			return errors.Join(fmt.Errorf("place %d has ring %d, expected %d", run, has, ring), err)
		}
	}
}

// leave gives the place of the run back, and frees those that others had left when it came. What cannot be done stays to do for a later
// run, which finds that this one has gone. The caller holds the lock.
func (s *Session) leave() {
	set, run := s.set, s.member.run
	all, err := set.places()
	if err != nil || all[run] != s.member.entered {
		return
	}
	left := uint32(leftRing)
	if s.member.ring.MaxEntries() > maxLeftRing {
		left = leftPrograms
	}
	for _, r := range all {
		if r.Left == leftRing {
			left = leftPrograms
		}
	}
	if left == leftPrograms && s.takeRing(run) != nil {
		return
	}
	maps.DeleteFunc(s.member.leaving, func(run, life uint32) bool { return all[run].CgroupId != 0 || all[run].Alive != life })
	if !set.sweep(func(of uint32) bool { return of == run || s.member.leaving[of] != 0 }) {
		return
	}
	set.free(run, left)
	for other := range s.member.leaving {
		set.free(other, leftNothing)
	}
}

// free makes a place one that a run can have.
func (set *probeSet) free(run, left uint32) {
	var r objects.KernelSharedRun
	if set.maps[objects.KernelSharedMapRuns].Lookup(run-1, &r) == nil {
		set.maps[objects.KernelSharedMapRuns].Put(run-1, objects.KernelSharedRun{Alive: r.Alive, Ended: 1, Left: left})
	}
}

// runs are the members, by their numbers.
func (set *probeSet) runs() (map[uint32]objects.KernelSharedRun, error) {
	all, err := set.places()
	maps.DeleteFunc(all, func(_ uint32, r objects.KernelSharedRun) bool { return r.CgroupId == 0 })
	return all, err
}

// places are all places, by their numbers. They are read at once.
func (set *probeSet) places() (map[uint32]objects.KernelSharedRun, error) {
	runs := set.maps[objects.KernelSharedMapRuns]
	places, values := make([]uint32, runs.MaxEntries()), make([]objects.KernelSharedRun, runs.MaxEntries())
	n, err := runs.BatchLookup(new(ebpf.MapBatchCursor), places, values, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) { // which says that there is no more
		return nil, fmt.Errorf("reading the runs: %w", err)
	}
	if n != len(places) {
		return nil, fmt.Errorf("reading the runs: %d places, expected %d", n, len(places))
	}
	all := map[uint32]objects.KernelSharedRun{}
	for i, r := range values {
		all[places[i]+1] = r
	}
	return all, nil
}
