//go:build amd64 || arm64

package bpf

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// Some objects are there several times (probes/settings.h): for the usual kernel, which has Cast and Loop and whose probes need
// no copies; for those that need copies; and for every other one. What is left out is a third of the instructions on the usual kernel,
// and four fifths where probes have copies (TestVerifiedInstructions prints them). A verifier looks at all of them.

// specFunc reads a compiled object.
type specFunc func() (*ebpf.CollectionSpec, error)

// forms are those of an object. Whole has all parts that general can be told to do without, and does with copies or without.
type forms struct{ usual, whole, general specFunc }

var (
	kernelObject  = forms{objects.LoadKernelUsual, objects.LoadKernelWhole, objects.LoadKernel}
	uringObject   = forms{objects.LoadUringUsual, objects.LoadUringWhole, objects.LoadUring}
	pathObjObject = forms{objects.LoadPathObjWhole, objects.LoadPathObjWhole, objects.LoadPathObj}
	filesObject   = forms{objects.LoadFilesWhole, objects.LoadFilesWhole, objects.LoadFiles}
)

// objectSet are the objects that observe, in the form for one run or in that for several.
type objectSet struct {
	kernel, uring, pathObj    forms
	guard, sock, unix, result specFunc
}

var (
	ownObjects    = objectSet{kernelObject, uringObject, pathObjObject, objects.LoadGuard, objects.LoadSock, objects.LoadUnix, objects.LoadResult}
	sharedObjects = objectSet{forms{usual: objects.LoadKernelShared}, forms{usual: objects.LoadUringShared}, forms{usual: objects.LoadPathObjShared},
		objects.LoadGuardShared, objects.LoadSockShared, objects.LoadUnixShared, objects.LoadResultShared}
	// Programs at cgroups are the same with copies.
	sharedCopies = objectSet{forms{whole: objects.LoadKernelSharedCopies}, forms{whole: objects.LoadUringSharedCopies}, forms{whole: objects.LoadPathObjSharedCopies},
		objects.LoadGuardSharedCopies, objects.LoadSockShared, objects.LoadUnixShared, objects.LoadResultShared}
)

// isWhole reports whether this kernel has what only the general form does without.
func (s *Session) isWhole() bool { return !s.general && s.without&(Cast|Loop) == 0 }

// read reads the form of an object that is for this kernel.
func (s *Session) read(f forms) (*ebpf.CollectionSpec, error) {
	switch {
	case !s.isWhole():
		return s.readForm(f.general)
	case s.copies.any():
		return s.readForm(f.whole)
	}
	return s.readForm(f.usual)
}

// readForm reads an object. Of a probe that it has twice, with a body and alone, it takes the one for this session.
func (s *Session) readForm(load specFunc) (*ebpf.CollectionSpec, error) {
	spec, err := load()
	if err != nil {
		return nil, err
	}
	for name, b := range bodies {
		alone := spec.Programs[b.alone]
		if alone == nil {
			continue
		}
		if !s.copies.has(name) {
			spec.Programs[name] = alone
			delete(spec.Programs, b.program)
		}
		delete(spec.Programs, b.alone)
	}
	return spec, nil
}

// withForm does something with an object in the form for this kernel. If the verifier refuses that, the general form stands in for it.
func (s *Session) withForm(f forms, do func(*ebpf.CollectionSpec) error) error {
	spec, err := s.read(f)
	if err == nil {
		err = do(spec)
	}
	if !s.refusedForm(err) || f.general == nil {
		return err
	}
	if spec, err = s.readForm(f.general); err == nil {
		err = do(spec)
	}
	return err
}

// readEarly begins to read the form of an object that this kernel looks like, beside what else a start has to do before it is known
// which one is wanted.
func readEarly(f forms, opt Options) forms {
	if opt.Without&(Cast|Loop) != 0 {
		return f
	}
	early := &f.usual
	if opt.Copies == CopiesOn || (opt.Copies == CopiesAuto && preemptsTasks()) {
		early = &f.whole
	}
	type result struct {
		spec *ebpf.CollectionSpec
		err  error
	}
	load, done := *early, make(chan result, 1)
	go func() {
		spec, err := load()
		done <- result{spec, err}
	}()
	*early = func() (*ebpf.CollectionSpec, error) {
		r := <-done
		return r.spec, r.err
	}
	return f
}

// preemptsTasks reports whether the release is one of those that let tasks be preempted in probes. Only DetectPreemption knows it.
func preemptsTasks() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	major, _, _ := strings.Cut(unix.ByteSliceToString(u.Release[:]), ".")
	n, _ := strconv.Atoi(major)
	return n >= 7
}

// refusedForm reports whether the verifier refused an object that the general form can stand in for.
func (s *Session) refusedForm(err error) bool {
	return s.isWhole() && errors.As(err, new(*ebpf.VerifierError))
}

// pick is a copy of an object with some of its programs; without names, with all. The programs themselves are not copied: to
// load one changes nothing of it.
func pick(spec *ebpf.CollectionSpec, programs ...string) *ebpf.CollectionSpec {
	some := onlyMaps(spec)
	some.Programs = maps.Clone(spec.Programs)
	if len(programs) > 0 {
		maps.DeleteFunc(some.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return !slices.Contains(programs, name) })
	}
	return some
}

// onlyMaps is a copy of an object without programs.
func onlyMaps(spec *ebpf.CollectionSpec) *ebpf.CollectionSpec {
	some := *spec
	some.Programs = nil
	return some.Copy()
}
