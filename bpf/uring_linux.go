//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"maps"
	"slices"

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
		err = s.attachUringObject(shared, form, s.read)
		if s.refusedUsual(err) {
			err = s.attachUringObject(shared, form, func(o twice) (*ebpf.CollectionSpec, error) { return o.general() })
		}
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
func (s *Session) attachUringObject(shared map[string]*ebpf.Map, form *uringForm, read func(twice) (*ebpf.CollectionSpec, error)) error {
	spec, err := read(s.from.uring)
	if err != nil {
		return err
	}
	programs := form.programs()
	own, err := s.load(onlyMaps(spec), shared)
	if err != nil {
		return err
	}
	s.requests = own.Maps[objects.UringMapRequests]
	shared = withMaps(shared, own, objects.UringMapRequests, objects.UringMapCloses, objects.UringMapBlank,
		objects.UringMapSubmitBody, objects.UringMapCompleteBody, objects.UringMapFailedBody)
	first, err := s.loadApart(spec, shared, programs, slices.Concat(ringSubmits, ringCompletes, []string{objects.UringProgOnReqFailed})...)
	if err != nil {
		return err
	}
	all := []map[string]*ebpf.Program{first}
	if s.copies.tasks {
		delete(shared, objects.UringMapBlank)
		for i := uint32(1); i < ringCopies; i++ {
			next := pick(spec)
			if err := next.Variables["copy"].Set(i); err != nil {
				return err
			}
			coll, err := s.load(next, shared, programs...)
			if err != nil {
				return err
			}
			all = append(all, coll.Programs)
		}
	}
	for _, name := range programs {
		for _, copy := range all {
			if err := s.trace(copy[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// withMaps are the shared maps and some of an object's own.
func withMaps(shared map[string]*ebpf.Map, coll *ebpf.Collection, names ...string) map[string]*ebpf.Map {
	all := maps.Clone(shared)
	for _, name := range names {
		if m := coll.Maps[name]; m != nil {
			all[name] = m
		}
	}
	return all
}

// unfinished counts requests of which there is no record: their completion was not observed.
func (s *Session) unfinished() (n uint64) {
	if s.requests == nil {
		return 0
	}
	var key uint64
	var q objects.UringRequest
	for it := s.requests.Iterate(); it.Next(&key, &q); {
		if q.State&(stateTold|stateCancelled) == 0 && (s.set == nil || q.Run == s.member.run) {
			n++
		}
	}
	return n
}

// States of uringrequest.h of a request that nothing more needs to be said about.
const (
	stateTold      = 1 << 1
	stateCancelled = 1 << 2
)
