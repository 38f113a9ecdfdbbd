//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas"
)

// Part is a set of what the objects use where a kernel has it, and have another way for
// where it has not. Of Cast and Loop, only the time that it takes differs.
type Part uint8

// The parts, in the order in which they are given up.
const (
	Cast    Part = 1 << iota // kernel memory by single instructions (Linux 6.2), else by helper calls
	Loop                     // bpf_loop (Linux 5.17), else loops in pieces
	Objects                  // the objects of path operations by fexit, else their text
)

// partOf is what there is to know about one part.
type partOf struct {
	Part
	name, variable, what string
	there                func(kernel *btf.Spec) bool
}

// parts has for each part its name, the variable by which the objects are told that it is
// not there, what it is in the kernel, and how the kernel's types show it.
var parts = []partOf{
	{Cast, schemas.LoadCast, "no_cast", "kfunc bpf_rdonly_cast", func(kernel *btf.Spec) bool {
		return typeByName(kernel, "bpf_rdonly_cast", new(*btf.Func)) == nil
	}},
	{Loop, schemas.LoadLoop, "no_loop", "helper bpf_loop", func(kernel *btf.Spec) bool {
		return enumHas(kernel, "bpf_func_id", "BPF_FUNC_loop")
	}},
	{Objects, schemas.LoadObjects, "", "functions that look paths up", func(*btf.Spec) bool { return true }}, // pathobj_linux.go finds out
}

// ParseParts reads a list of parts, as schemas.LoadWithout has them.
func ParseParts(list string) (set Part) {
	for _, p := range parts {
		if slices.Contains(strings.Split(list, ","), p.name) {
			set |= p.Part
		}
	}
	return set
}

// needs are the helpers that nothing replaces. The last came with functions as arguments.
var needs = []struct{ helper, since string }{
	{"ringbuf_output", "5.8"}, {"get_current_task_btf", "5.11"}, {"for_each_map_elem", "5.13"},
}

// OldKernelError says what a kernel lacks that nothing replaces.
type OldKernelError struct{ Lacks string }

func (e *OldKernelError) Error() string { return "this kernel has no " + e.Lacks }

// lacks finds out what this kernel does not have.
func (s *Session) lacks(forced Part) error {
	kernel, err := s.types.Kernel()
	if err != nil {
		return fmt.Errorf("reading the kernel's types: %w", err)
	}
	for _, n := range needs {
		if !enumHas(kernel, "bpf_func_id", "BPF_FUNC_"+n.helper) {
			return &OldKernelError{"helper bpf_" + n.helper + " (Linux " + n.since + ")"}
		}
	}
	for _, p := range parts {
		switch {
		case forced&p.Part != 0:
			s.reasons = append(s.reasons, p.reason("as asked"))
		case !p.there(kernel):
			s.reasons = append(s.reasons, p.reason("this kernel has no "+p.what))
		default:
			continue
		}
		s.without |= p.Part
	}
	return nil
}

func (p partOf) reason(why string) string { return "without " + p.name + ": " + why }

// Loaded says in which way the objects were loaded, and why: the fact loaded. The order
// does not depend on which object was loaded first.
func (s *Session) Loaded() string {
	if len(s.reasons) == 0 {
		return schemas.LoadedWhole
	}
	return strings.Join(slices.Sorted(slices.Values(s.reasons)), "; ")
}

// load loads an object, or some of its programs, that shares the maps of the base object, as far as shared has them.
func (s *Session) load(spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map, keep ...string) (*ebpf.Collection, error) {
	spec = pick(spec, keep...)
	if err := s.prepare(spec); err != nil {
		return nil, err
	}
	replace := map[string]*ebpf.Map{}
	for name, m := range shared {
		if own := spec.Maps[name]; own != nil && !strings.HasPrefix(name, ".") {
			own.MaxEntries = m.MaxEntries()
			replace[name] = m
		}
	}
	coll, err := s.loadSomehow(spec, replace)
	if err != nil {
		return nil, err
	}
	s.add(coll, replace)
	return coll, nil
}

// add keeps a loaded object. The maps that it was given are those of another one.
func (s *Session) add(coll *ebpf.Collection, given map[string]*ebpf.Map) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.coll = append(s.coll, coll)
	if s.shares == nil {
		s.shares = map[*ebpf.Map]bool{}
	}
	for name := range given {
		s.shares[coll.Maps[name]] = true
	}
}

// loadSomehow loads an object. A verifier that refuses it gets it again, without one part more.
func (s *Session) loadSomehow(spec *ebpf.CollectionSpec, replace map[string]*ebpf.Map) (*ebpf.Collection, error) {
	kernel, err := s.types.Kernel()
	if err != nil {
		return nil, fmt.Errorf("reading the kernel's types: %w", err)
	}
	// The objects read types of the kernel itself. Those of its modules cost time, and to
	// decode them in parallel is a crash: they share the kernel's without its lock.
	opts := ebpf.CollectionOptions{MapReplacements: replace, Cache: s.types.Cache(), Programs: ebpf.ProgramOptions{KernelTypes: kernel}}
	coll, err := newCollection(spec, opts)
	var reasons []string
	for _, p := range parts {
		v, refused := spec.Variables[p.variable], new(ebpf.VerifierError)
		if v == nil || s.without&p.Part != 0 || !errors.As(err, &refused) {
			continue
		}
		why, _, _ := strings.Cut(err.Error(), "\n")
		reasons = append(reasons, p.reason(why))
		if e := v.Set(true); e != nil {
			return nil, e
		}
		coll, err = newCollection(spec, opts)
	}
	if err == nil && len(reasons) > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reasons = append(s.reasons, reasons...)
	}
	return coll, err
}

// newCollection is a variable so that a test can see what happens when a verifier refuses.
var newCollection = ebpf.NewCollectionWithOptions

// prepare sets what every object needs to know.
func (s *Session) prepare(spec *ebpf.CollectionSpec) error {
	n, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	values := map[string]any{
		"scope_cgroup_id": s.CgroupID, "ncpus": uint32(n), "copied_tasks": s.copies.tasks, "copied_calls": s.copies.calls,
		objects.KernelVarCaptureTgid: s.captureTGID, objects.KernelVarSupervisorTgid: s.supervisorTGID,
		objects.KernelVarReadArguments: s.arguments,
	}
	for _, p := range parts {
		values[p.variable] = s.without&p.Part != 0
	}
	for name, value := range values {
		if v := spec.Variables[name]; v != nil {
			if err := v.Set(value); err != nil {
				return err
			}
		}
	}
	if m := spec.Maps["scratch"]; m != nil {
		m.MaxEntries = uint32(n) * s.copies.scratchRecords()
	}
	for _, m := range spec.Maps {
		if !hasTypes[m.Type] {
			m.Key, m.Value = nil, nil
		}
	}
	return nil
}

// hasTypes are the kinds of maps that keep the types of their keys and values: the kernel asks for them where a map is the storage of
// tasks or cgroups. Those of others are for people who look at a map, and are one more call of the kernel for each.
var hasTypes = map[ebpf.MapType]bool{ebpf.TaskStorage: true, ebpf.CGroupStorage: true}

// SCRATCHES of record.h, and how many of them are of probes with many copies.
const (
	scratches       = 7
	scratchesOfMany = 3
)
