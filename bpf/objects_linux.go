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

// Two objects are there twice: for the usual kernel, and for every other one (probes/settings.h).
// The usual one has Cast and Loop, and none of its probes needs copies. What can be left out for it
// is a third of what a start takes.

// specFunc reads a compiled object.
type specFunc func() (*ebpf.CollectionSpec, error)

// twice is an object with its two forms.
type twice struct{ usual, general specFunc }

var (
	kernelObject = twice{objects.LoadKernelUsual, objects.LoadKernel}
	uringObject  = twice{objects.LoadUringUsual, objects.LoadUring}
)

// objectSet are the objects that observe, in the form for one run or in that for several.
type objectSet struct {
	kernel, uring                      twice
	guard, sock, unix, result, pathObj specFunc
}

var (
	ownObjects    = objectSet{kernelObject, uringObject, objects.LoadGuard, objects.LoadSock, objects.LoadUnix, objects.LoadResult, objects.LoadPathObj}
	sharedObjects = objectSet{twice{usual: objects.LoadKernelShared}, twice{usual: objects.LoadUringShared}, objects.LoadGuardShared,
		objects.LoadSockShared, objects.LoadUnixShared, objects.LoadResultShared, objects.LoadPathObjShared}
	// Programs at cgroups are the same with copies.
	sharedCopies = objectSet{twice{general: objects.LoadKernelSharedCopies}, twice{general: objects.LoadUringSharedCopies}, objects.LoadGuardSharedCopies,
		objects.LoadSockShared, objects.LoadUnixShared, objects.LoadResultShared, objects.LoadPathObjSharedCopies}
)

// usual reports whether this kernel is a usual one.
func (s *Session) usual() bool {
	return !s.general && !s.copies.any() && s.without&(Cast|Loop) == 0
}

func (s *Session) read(o twice) (*ebpf.CollectionSpec, error) {
	if s.usual() {
		return o.usual()
	}
	return o.general()
}

// readEarly begins to read an object for the usual kernel, beside what else a start has to do before it
// knows whether that one is wanted. Where it does not look like it, nothing is read in vain.
func readEarly(o twice, opt Options) twice {
	if opt.Copies == CopiesOn || opt.Without&(Cast|Loop) != 0 || (opt.Copies == CopiesAuto && preemptsTasks()) {
		return o
	}
	type result struct {
		spec *ebpf.CollectionSpec
		err  error
	}
	done := make(chan result, 1)
	go func() {
		spec, err := o.usual()
		done <- result{spec, err}
	}()
	return twice{general: o.general, usual: func() (*ebpf.CollectionSpec, error) {
		r := <-done
		return r.spec, r.err
	}}
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

// refusedUsual reports whether the verifier refused an object that the one for every kernel can stand in for.
func (s *Session) refusedUsual(err error) bool {
	return s.usual() && errors.As(err, new(*ebpf.VerifierError))
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
