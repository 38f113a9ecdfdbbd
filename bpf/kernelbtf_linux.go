//go:build amd64 || arm64

package bpf

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// kernelNames are the names of all types of the kernel that are looked at, a line each: those in the objects, and those that the
// loader itself asks for. TestKernelNames makes the list.
//
//go:embed kernelnames.txt
var kernelNames string

// wantedNames is that list as a set.
var wantedNames = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for line := range strings.Lines(kernelNames) {
		set[strings.TrimSuffix(line, "\n")] = true
	}
	return set
})

// kernelBTF are the types of the running kernel, decoded once for all objects. The zero value is ready, and safe for concurrent use.
type kernelBTF struct {
	once  sync.Once
	cache *btf.Cache
}

// Cache is what the loader looks into.
func (k *kernelBTF) Cache() *btf.Cache {
	k.once.Do(func() {
		k.cache = btf.NewCache()
		if few, err := readFewTypes(); err == nil && hasFunctions(few) {
			give(k.cache, few)
		} // else the loader reads all of them, or says why it cannot
	})
	return k.cache
}

// Kernel returns the types. Its error is that of btf.LoadKernelSpec.
func (k *kernelBTF) Kernel() (*btf.Spec, error) { return k.Cache().Kernel() }

// calledFunctions are those of the kernel that programs call. Where one is not there, the loader looks for it in the types of
// modules, which are told by all of the kernel's: a few do not do (Linux 6.1 has neither).
var calledFunctions = []string{"bpf_cast_to_kern_ctx", "bpf_rdonly_cast"}

func hasFunctions(kernel *btf.Spec) bool {
	for _, name := range calledFunctions {
		if typeByName(kernel, name, new(*btf.Func)) != nil {
			return false
		}
	}
	return true
}

// typeByName looks for a type of the kernel. A name that is not on the list is an error: the type can be there all the same.
func typeByName(kernel *btf.Spec, name string, typ any) error {
	if !wantedNames()[name] {
		return fmt.Errorf("the name %s is not in kernelnames.txt", name)
	}
	return kernel.TypeByName(name, typ)
}

// readFewTypes reads those that are looked at. A variable, so that a test can have all.
var readFewTypes = func() (*btf.Spec, error) {
	f, err := os.Open("/sys/kernel/btf/vmlinux")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	raw, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err == nil {
		defer unix.Munmap(raw)
	} else if raw, err = os.ReadFile(f.Name()); err != nil { // before Linux 6.16
		return nil, err
	}
	few, err := reduceTypes(raw, wantedNames())
	if err != nil {
		return nil, err
	}
	return btf.LoadSpecFromReader(bytes.NewReader(few))
}

// give makes a cache hold these types as those of the kernel. The library has no way to say so (cilium/ebpf 0.22). If another
// release has another field, the cache stays as it is, and TestGiveTypes fails.
func give(cache *btf.Cache, kernel *btf.Spec) bool {
	types := reflect.ValueOf(cache).Elem().FieldByName("kernelTypes")
	if !types.IsValid() || types.Type() != reflect.TypeFor[*btf.Spec]() {
		return false
	}
	*(**btf.Spec)(types.Addr().UnsafePointer()) = kernel
	return true
}
