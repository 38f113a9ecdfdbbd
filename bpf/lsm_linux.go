//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf/internal/objects"
)

// ProbeLSM reports whether BPF LSM programs are active here: nil, or the reason why not. A
// program that was loaded and attached proves nothing, since a kernel can accept both and
// never run it. So an open that a program must refuse is made.
func ProbeLSM() error {
	s := &Session{types: new(kernelBTF)}
	if err := s.lacks(0); err != nil {
		return err
	}
	a, err := s.newAsker()
	if err != nil {
		return err
	}
	defer a.close()
	return a.canary()
}

// asker runs programs in this process, to learn what the kernel has.
type asker struct{ coll *ebpf.Collection }

func (s *Session) newAsker() (*asker, error) {
	if s.without&Loop != 0 {
		return nil, errors.New("file rules need the helper bpf_loop (Linux 5.17), which is not there")
	}
	spec, err := objects.LoadLsm()
	if err != nil {
		return nil, err
	}
	for name := range spec.Maps {
		if name != objects.LsmMapLearned && name != objects.LsmMapCanary && !strings.HasPrefix(name, ".") {
			delete(spec.Maps, name) // the shared headers have more than this object uses
		}
	}
	if err := s.prepare(spec); err != nil {
		return nil, err
	}
	kernel, err := s.types.Kernel()
	if err != nil {
		return nil, err
	}
	if _, err := hookParams(kernel, spec.Programs[objects.LsmProgOnCanary].AttachTo); err != nil {
		return nil, err
	}
	coll, err := s.loadSomehow(spec, nil)
	switch {
	case err == nil:
		return &asker{coll}, nil
	case errors.Is(err, unix.EPERM):
		return nil, fmt.Errorf("the kernel refuses to load LSM programs: %w", unix.EPERM)
	}
	return nil, fmt.Errorf("loading the LSM probe: %w", err)
}

func (a *asker) close() { a.coll.Close() }

// run runs a program in this thread, with one argument.
func (a *asker) run(prog string, arg int64) error {
	code, err := a.coll.Programs[prog].Run(&ebpf.RunOptions{Context: []uint64{uint64(arg)}})
	if err == nil && code != 0 {
		err = fmt.Errorf("result %d", code)
	}
	if err != nil {
		return fmt.Errorf("running %s: %w", prog, err)
	}
	return nil
}

// canary makes an open that the program must refuse.
func (a *asker) canary() (err error) {
	l, err := link.AttachLSM(link.LSMOptions{Program: a.coll.Programs[objects.LsmProgOnCanary]})
	if err != nil {
		return fmt.Errorf("attaching an LSM program: %w", err)
	}
	defer l.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := a.run(objects.LsmProgOnArm, 1); err != nil {
		return err
	}
	fd, opened := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err := a.run(objects.LsmProgOnArm, 0); err != nil {
		return err
	}
	if opened == nil {
		unix.Close(fd)
		return fmt.Errorf("an LSM program can be attached, but does not act: %s", activeLSMs())
	}
	if opened != unix.EPERM {
		return fmt.Errorf("opening / to test the LSM program: %w", opened)
	}
	return nil
}

// activeLSMs says what the kernel says about its security modules.
func activeLSMs() string {
	b, err := os.ReadFile("/sys/kernel/security/lsm")
	if err != nil {
		return "bpf is not among the active security modules, or they cannot be read"
	}
	list := strings.TrimSpace(string(b))
	for name := range strings.SplitSeq(list, ",") {
		if name == "bpf" {
			return "although bpf is among the active security modules (" + list + ")"
		}
	}
	return "bpf is not among the active security modules (" + list + "); the boot parameter lsm= sets them"
}

// learn asks for the inode behind a descriptor and the magic number of its file system, or
// with a negative number for this process's mount namespace and its number.
func (a *asker) learn(fd int) (out objects.LsmLearned, err error) {
	if err := a.run(objects.LsmProgOnLearn, int64(fd)); err != nil {
		return out, err
	}
	if err := a.coll.Maps[objects.LsmMapLearned].Lookup(uint32(0), &out); err != nil {
		return out, err
	}
	if out.Inode == 0 || out.Magic == 0 {
		return out, errors.New("the kernel's structures could not be read")
	}
	return out, nil
}

// hookParams are the parameters of an LSM hook, as the kernel has it.
func hookParams(kernel *btf.Spec, hook string) ([]btf.FuncParam, error) {
	var f *btf.Func
	if err := typeByName(kernel, "bpf_lsm_"+hook, &f); err != nil {
		return nil, fmt.Errorf("this kernel has no LSM hook %s for programs (CONFIG_BPF_LSM, CONFIG_SECURITY_PATH)", hook)
	}
	proto, ok := f.Type.(*btf.FuncProto)
	if !ok {
		return nil, fmt.Errorf("LSM hook %s: not a function", hook)
	}
	return proto.Params, nil
}

// pointsTo reports whether a parameter is a pointer to a type.
func pointsTo(p []btf.FuncParam, i int, name string) bool {
	if i >= len(p) {
		return false
	}
	q, ok := p[i].Type.(*btf.Pointer)
	if !ok {
		return false
	}
	t := q.Target
	if c, ok := t.(*btf.Const); ok {
		t = c.Type
	}
	return t.TypeName() == name
}
