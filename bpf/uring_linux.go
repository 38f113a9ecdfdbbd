//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// attachUring attaches the io_uring object, or, where it does not fit this kernel,
// the counter that says whether io_uring was used.
func (s *Session) attachUring(shared map[string]*ebpf.Map) error {
	err := s.uringFits()
	if err == nil {
		if err = s.attachUringObject(shared); err == nil {
			return nil
		}
	}
	spec, e := objects.LoadUringCount()
	if e != nil {
		return errors.Join(err, e)
	}
	coll, e := s.load(spec, shared, 0)
	if e == nil {
		e = s.trace(coll.Programs[objects.UringCountProgOnCreate])
	}
	if e != nil {
		return fmt.Errorf("%w; its use is not counted either: %w", err, e)
	}
	return err
}

func (s *Session) attachUringObject(shared map[string]*ebpf.Map) error {
	spec, err := objects.LoadUring()
	if err != nil {
		return err
	}
	coll, err := s.load(spec, shared, 0)
	if err != nil {
		return err
	}
	s.requests = coll.Maps[objects.UringMapRequests]
	if err := s.trace(coll.Programs[objects.UringProgOnComplete]); err != nil {
		return err
	}
	return s.trace(coll.Programs[objects.UringProgOnSubmit])
}

// uringFits compares the tracepoints' parameters with those that the object expects. On a
// kernel whose io_uring_complete has other parameters, the object would still load, but
// read wrong values (seen on 6.1).
func (s *Session) uringFits() error {
	spec, err := s.types.Kernel()
	if err != nil {
		return err
	}
	for name, want := range map[string][]string{
		"btf_trace_io_uring_submit_req": {"void", "io_kiocb"},
		"btf_trace_io_uring_complete":   {"void", "io_ring_ctx", "void", "io_uring_cqe"},
	} {
		var t *btf.Typedef
		if err := spec.TypeByName(name, &t); err != nil {
			return fmt.Errorf("no tracepoint %s", name)
		}
		if err := sameParams(t, want); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// sameParams checks that every parameter is a pointer to the named type.
func sameParams(t *btf.Typedef, want []string) error {
	p, ok := t.Type.(*btf.Pointer)
	if !ok {
		return errors.New("not a function pointer")
	}
	f, ok := p.Target.(*btf.FuncProto)
	if !ok || len(f.Params) != len(want) {
		return errors.New("other parameters than this build knows")
	}
	for i, param := range f.Params {
		q, ok := param.Type.(*btf.Pointer)
		if !ok {
			return fmt.Errorf("parameter %d is not a pointer", i)
		}
		name := q.Target.TypeName()
		if _, void := q.Target.(*btf.Void); void {
			name = "void"
		}
		if name != want[i] {
			return fmt.Errorf("parameter %d is %s, expected %s", i, name, want[i])
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
