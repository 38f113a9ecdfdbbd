//go:build amd64 || arm64

package bpf

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// The objects of path operations come from the functions of the kernel that look paths up:
// probes/pathobj.bpf.c keeps what they find until the call ends. They are not part of any
// interface. So a function is used if its form is known, and if a test shows that the
// kernel's calls go through it. Where there is none, the record has these paths as text.

// lookupForm is a function that looks paths up: its parameters, and the program for it.
type lookupForm struct {
	function string
	params   []string
	program  string
}

// lookups are the forms by the part of a path that they look up, in the order in which they
// are tried.
var lookups = [][]lookupForm{
	{
		{"__filename_parentat", []string{"s32 filename* u32 path* qstr* last_type* path*", "s32 filename* u32 path* qstr* int* path*"}, objects.PathObjProgOnParent},
		{"path_parentat", []string{"nameidata* u32 path*"}, objects.PathObjProgOnParentOfData},
	},
	{
		{"filename_lookup", []string{"s32 filename* u32 path* path*"}, objects.PathObjProgOnWhole},
	},
}

// objectPrograms are the programs that keep objects. An event whose object they did not see
// is recorded all the same: a run that the kernel skips loses none.
var objectPrograms = []string{objects.PathObjProgOnParent, objects.PathObjProgOnParentOfData, objects.PathObjProgOnWhole}

// attachObjects attaches the programs that keep objects, and says to which functions.
func (s *Session) attachObjects(shared map[string]*ebpf.Map) (names string, err error) {
	if s.without&Objects != 0 {
		return "", errors.New("as asked")
	}
	kernel, err := s.types.Kernel()
	if err != nil {
		return "", err
	}
	var used []string
	var errs []error
	for part, forms := range lookups {
		name, err := s.firstLookup(kernel, shared, forms, lookupTests[part])
		if errors.Is(err, unix.EPERM) {
			return "", err // what a hardened kernel refuses once, it refuses always
		}
		if errs = append(errs, err); err == nil {
			used = append(used, name)
		}
	}
	if len(used) == 0 {
		return "", errors.Join(errs...)
	}
	return strings.Join(used, " "), nil
}

// firstLookup attaches to the first function that this kernel has and uses.
func (s *Session) firstLookup(kernel *btf.Spec, shared map[string]*ebpf.Map, forms []lookupForm, tests []lookupTest) (string, error) {
	var why []string
	for _, f := range forms {
		err := fits(kernel, f)
		if err == nil {
			if err = s.tryLookup(f.function); err == nil {
				err = s.attachLookup(shared, f, tests)
			}
			if err == nil {
				return f.function, nil
			}
			if errors.Is(err, unix.EPERM) {
				return "", fmt.Errorf("the kernel refuses to load fexit programs: %w", unix.EPERM)
			}
		}
		text, _, _ := strings.Cut(err.Error(), "\n")
		why = append(why, f.function+": "+text)
	}
	return "", errors.New(strings.Join(why, "; "))
}

// fits compares the form of a function.
func fits(kernel *btf.Spec, form lookupForm) error {
	var f *btf.Func
	if err := typeByName(kernel, form.function, &f); err != nil {
		return errors.New("not a function of its own here")
	}
	proto, ok := f.Type.(*btf.FuncProto)
	if !ok || typeForm(proto.Return) != "s32" {
		return errors.New("does not return a number")
	}
	var params []string
	for _, p := range proto.Params {
		params = append(params, typeForm(p.Type))
	}
	if has := strings.Join(params, " "); !slices.Contains(form.params, has) {
		return fmt.Errorf("this build does not know the form (%s)", has)
	}
	return nil
}

// tryLookup loads a program that does nothing. A kernel that refuses every program of this kind is asked so in less time than it
// takes to read the object.
func (s *Session) tryLookup(function string) error {
	nothing := &ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceFExit, AttachTo: function,
		License: "Dual BSD/GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}}
	spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"nothing": nothing}}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: s.types.Cache(), Programs: ebpf.ProgramOptions{LogDisabled: true}})
	if err == nil {
		coll.Close()
	}
	return err
}

func (s *Session) attachLookup(shared map[string]*ebpf.Map, form lookupForm, tests []lookupTest) error {
	return s.withForm(s.from.pathObj, func(spec *ebpf.CollectionSpec) error { return s.attachLookupForm(spec, shared, form, tests) })
}

func (s *Session) attachLookupForm(spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map, form lookupForm, tests []lookupTest) error {
	spec = pick(spec, form.program, objects.PathObjProgOnArmTester)
	if err := s.prepare(spec); err != nil {
		return err
	}
	spec.Programs[form.program].AttachTo = form.function
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	spec.Maps[objects.PathObjMapScratch].MaxEntries = uint32(cpus * len(lookups))
	use := maps.Clone(shared)
	delete(use, objects.PathObjMapScratch) // these programs run while others build a record
	for name := range use {
		if own := spec.Maps[name]; own == nil || strings.HasPrefix(name, ".") {
			delete(use, name)
		} else {
			own.MaxEntries = use[name].MaxEntries()
		}
	}
	coll, err := s.loadSomehow(spec, use)
	if err != nil {
		return err
	}
	var l link.Link
	if err = s.afterRequired(); err == nil { // which forget what is kept here
		l, err = link.AttachTracing(link.TracingOptions{Program: coll.Programs[form.program]})
	}
	if err == nil {
		err = testLookups(coll, tests)
	}
	if err != nil {
		if l != nil {
			l.Close()
		}
		coll.Close()
		return err
	}
	s.add(coll, use)
	s.keep(l, coll.Programs[form.program])
	return nil
}

// lookupTest is a call that changes nothing, and the object of its path, by its last two names.
type lookupTest struct {
	name   string
	call   func() error
	object string
}

// lookupTests are the calls that must go through a function, by the part that it looks up.
var lookupTests = func() [][]lookupTest {
	const none = "/proc/self/runner-capture" // processes have no file of that name
	test := func(name string, call func() error) lookupTest {
		return lookupTest{name, call, fmt.Sprintf("%d/runner-capture", os.Getpid())}
	}
	return [][]lookupTest{{
		test("mkdir", func() error { return unix.Mkdirat(unix.AT_FDCWD, none, 0o700) }),
		test("unlink", func() error { return unix.Unlinkat(unix.AT_FDCWD, none, 0) }),
		test("rmdir", func() error { return unix.Unlinkat(unix.AT_FDCWD, none, unix.AT_REMOVEDIR) }),
		test("rename", func() error { return unix.Renameat(unix.AT_FDCWD, none, unix.AT_FDCWD, none+"2") }),
	}, {
		{"truncate", func() error { return unix.Truncate("/proc/self/task", 0) }, fmt.Sprintf("%d/task", os.Getpid())},
	}}
}()

// lookupTries is how often a test is made: the kernel skips a program while a task of the same
// CPU is preempted in it.
const lookupTries = 3

// testLookups makes the calls and looks what was kept of them.
func testLookups(coll *ebpf.Collection, tests []lookupTest) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a := asker{coll}
	if err := a.run(objects.PathObjProgOnArmTester, 1); err != nil {
		return err
	}
	var errs []error
	for _, t := range tests {
		var err error
		for range lookupTries {
			if err = t.run(coll); err == nil {
				break
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, a.run(objects.PathObjProgOnArmTester, 0))...)
}

func (t lookupTest) run(coll *ebpf.Collection) error {
	if err := t.call(); err == nil {
		return fmt.Errorf("%s of a test path succeeded", t.name)
	}
	kept, key := coll.Maps[objects.PathObjMapPathObjects], uint32(0)
	var found objects.PathObjCallObjects
	if err := kept.Lookup(key, &found); err != nil {
		return fmt.Errorf("an object of %s did not come: %w", t.name, err)
	}
	if err := kept.Delete(key); err != nil {
		return err
	}
	dir, last, _ := strings.Cut(t.object, "/")
	var want []byte
	for _, name := range []string{last, dir} {
		want = append(append(want, byte(len(name))), name...)
	}
	if o := &found.Of[0]; o.Found != 1 || !bytes.HasPrefix(o.Comps[:o.Len], want) {
		return fmt.Errorf("the object of %s is another one", t.name)
	}
	return nil
}
