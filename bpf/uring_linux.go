//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/cilium/ebpf"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// attachUring attaches the io_uring object, or, where it does not fit this kernel,
// the counter that says whether io_uring was used.
func (s *Session) attachUring(shared map[string]*ebpf.Map) error {
	kernel, err := s.types.Kernel()
	if err != nil {
		return err
	}
	form, err := uringFormOf(kernel)
	if err == nil {
		err = s.attachUringObject(shared, form)
		if err == nil {
			s.IOUringForm = form.String()
			return nil
		}
	}
	spec, e := objects.LoadUringCount()
	if e != nil {
		return errors.Join(err, e)
	}
	coll, e := s.load(spec, shared)
	if e == nil {
		e = s.trace(coll.Programs[objects.UringCountProgOnCreate])
	}
	if e != nil {
		return fmt.Errorf("%w; its use is not counted either: %w", err, e)
	}
	return err
}

// attachUringObject attaches the object, and copies of it where tasks are preempted in
// probes. They share the requests and the bodies.
func (s *Session) attachUringObject(shared map[string]*ebpf.Map, form *uringForm) error {
	return s.withForm(s.from.uring, func(spec *ebpf.CollectionSpec) error { return s.attachUringForm(spec, shared, form) })
}

func (s *Session) attachUringForm(spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map, form *uringForm) error {
	programs := form.programs()
	coll, err := s.loadWithBodies(spec, shared, programs...)
	if err != nil {
		return err
	}
	s.requests = coll.Maps[objects.UringMapRequests]
	all := []*ebpf.Collection{coll}
	if s.copies.tasks {
		shared = maps.Clone(shared)
		for _, name := range []string{objects.UringMapRequests, objects.UringMapCloses, objects.UringMapSubmitBody, objects.UringMapCompleteBody, objects.UringMapFailedBody} {
			shared[name] = coll.Maps[name]
		}
		for i := uint32(1); i < smallCopies; i++ {
			next := pick(spec)
			if err := next.Variables["copy"].Set(i); err != nil {
				return err
			}
			if coll, err = s.load(next, shared, programs...); err != nil {
				return err
			}
			all = append(all, coll)
		}
	}
	for _, name := range programs {
		for _, coll := range all {
			if err := s.trace(coll.Programs[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// unfinished counts requests of which there is no record: their completion was not observed. Programs of other runs that share the
// table take theirs out meanwhile, and a walk can then begin anew: so each counts once, and a walk that came to no end is made again.
func (s *Session) unfinished() uint64 {
	if s.requests == nil {
		return 0
	}
	found := map[uint64]bool{}
	for range tableWalks {
		clear(found)
		var key uint64
		var q objects.UringRequest
		it := s.requests.Iterate()
		for it.Next(&key, &q) {
			if q.State&(stateTold|stateCancelled) == 0 && (s.set == nil || q.Run == s.member.run) {
				found[key] = true
			}
		}
		if it.Err() == nil {
			return uint64(len(found))
		}
	}
	return uint64(max(len(found), 1)) // nobody knows whether there are more
}

// ringPatience is how long the end of a run waits for requests. The kernel takes down the rings of a process that has ended, and so
// completes what they have, a moment after that. What others hold can take any time.
const ringPatience = 50 * time.Millisecond

func (s *Session) awaitRequests() {
	for end := now() + uint64(ringPatience); s.unfinished() > 0 && now() < end; {
		time.Sleep(time.Millisecond)
	}
}

// States of uringrequest.h of a request that nothing more needs to be said about.
const (
	stateTold      = 1 << 1
	stateCancelled = 1 << 2
)
