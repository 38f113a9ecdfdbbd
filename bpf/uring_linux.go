//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"maps"

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
		if err = s.attachUringObject(shared, form); err == nil {
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
	first, err := objects.LoadUring()
	if err != nil {
		return err
	}
	spec := first.Copy()
	coll, err := s.loadWithBodies(first, shared, form.submit, form.complete)
	if err != nil {
		return err
	}
	s.requests = coll.Maps[objects.UringMapRequests]
	all := []*ebpf.Collection{coll}
	if s.copies.tasks {
		shared = maps.Clone(shared)
		for _, name := range []string{objects.UringMapRequests, objects.UringMapSubmitBody, objects.UringMapCompleteBody} {
			shared[name] = coll.Maps[name]
		}
		for i := uint32(1); i < ringCopies; i++ {
			next := spec.Copy()
			if err := next.Variables["copy"].Set(i); err != nil {
				return err
			}
			if coll, err = s.load(next, shared, form.submit, form.complete); err != nil {
				return err
			}
			all = append(all, coll)
		}
	}
	for _, name := range []string{form.complete, form.submit} {
		for _, coll := range all {
			if err := s.trace(coll.Programs[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// unfinished counts requests whose completion was not observed: the program did not ask
// for one, or ended first.
func (s *Session) unfinished() (n uint64) {
	if s.requests == nil {
		return 0
	}
	var key uint64
	value := make([]byte, s.requests.ValueSize())
	for it := s.requests.Iterate(); it.Next(&key, value); {
		n++
	}
	return n
}
