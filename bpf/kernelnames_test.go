//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"debug/elf"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// loaderNames are the names that this package asks for itself.
var loaderNames = []string{"bpf_func_id", "bpf_attach_type", "bpf_rdonly_cast", "__preempt_count", "pcpu_hot", "task_struct"}

// The list of names is that of the types in all objects of both architectures, of what their programs attach to, and of what this
// package asks for.
func TestKernelNames(t *testing.T) {
	set, called := map[string]bool{}, map[string]bool{}
	for _, name := range loaderNames {
		set[name] = true
	}
	for _, hook := range tries {
		set["btf_trace_"+hook] = true
	}
	for _, f := range slices.Concat(lookups...) {
		set[f.function] = true
	}
	for _, f := range slices.Concat(slices.Concat(uringOthers...), uringSubmits, uringCompletes) {
		set["btf_trace_"+f.name] = true
	}
	for _, n := range uringNames {
		set[n[0]] = true
	}
	objects, err := filepath.Glob("internal/objects/*_bpfel.o")
	testkit.Must(t, err)
	for _, path := range objects {
		addNames(t, set, called, path)
	}
	if have := slices.Sorted(maps.Keys(called)); !slices.Equal(have, calledFunctions) {
		t.Errorf("the programs call %q of the kernel, expected calledFunctions", have)
	}
	list := slices.Sorted(maps.Keys(set))
	testkit.Golden(t, "kernelnames.txt", []byte(strings.Join(list, "\n")+"\n"))
	t.Logf("%d names of %d objects", len(list), len(objects))
}

func addNames(t *testing.T, set, called map[string]bool, path string) {
	t.Helper()
	raw := testkit.Read(t, path)
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(raw))
	testkit.Must(t, err)
	for _, p := range spec.Programs {
		for i := range p.Instructions {
			if ins := &p.Instructions[i]; ins.IsKfuncCall() {
				called[ins.Reference()] = true
			}
		}
		switch {
		case p.AttachTo == "":
		case p.Type == ebpf.LSM:
			set["bpf_lsm_"+p.AttachTo] = true
		case p.AttachType == ebpf.AttachTraceRawTp:
			set["btf_trace_"+p.AttachTo] = true
		default:
			set[p.AttachTo] = true
		}
	}
	f, err := elf.NewFile(bytes.NewReader(raw))
	testkit.Must(t, err)
	types, err := f.Section(".BTF").Data()
	testkit.Must(t, err)
	all, err := btf.LoadSpecFromReader(bytes.NewReader(types))
	testkit.Must(t, err)
	for typ, err := range all.All() {
		testkit.Must(t, err)
		name := typ.TypeName()
		if i := strings.LastIndex(name, "___"); i > 0 {
			name = name[:i]
		}
		switch typ.(type) {
		case *btf.Datasec, *btf.Var:
		default:
			set[name] = true
		}
	}
	delete(set, "")
}

// Whoever asks the kernel's types for a name asks for one on the list.
func TestNamesAreOnTheList(t *testing.T) {
	files, err := filepath.Glob("*.go")
	testkit.Must(t, err)
	ask := regexp.MustCompile(`\.(Any)?Types?ByName\(`)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") || path == "kernelbtf_linux.go" {
			continue
		}
		b, err := os.ReadFile(path)
		testkit.Must(t, err)
		if ask.Match(b) {
			t.Errorf("%s asks the types themselves, expected typeByName", path)
		}
	}
}
