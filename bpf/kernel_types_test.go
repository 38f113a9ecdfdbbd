//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// typesDir names a folder with the types of other kernels (the content of their
// /sys/kernel/btf/vmlinux) as ARCH-RELEASE.btf, ARCH as Go writes it.
const typesDir = "RUNNER_KERNEL_TYPES"

// TestKernelTypes finds in the types of each kernel everything that the objects read: every
// field, every tracepoint, one form of what has several. Only the verifier is left to say no.
func TestKernelTypes(t *testing.T) {
	kernels := map[string]string{"here": "/sys/kernel/btf/vmlinux"}
	if dir := os.Getenv(typesDir); dir != "" {
		files, err := filepath.Glob(filepath.Join(dir, "*.btf"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s=%s holds no .btf file: %v", typesDir, dir, err)
		}
		for _, f := range files {
			kernels[strings.TrimSuffix(filepath.Base(f), ".btf")] = f
		}
	} else {
		testkit.Note(t, "the types of other kernels", typesDir+" names no folder with them")
	}
	for name, file := range kernels {
		t.Run(name, func(t *testing.T) {
			kernel, err := btf.LoadSpec(file)
			if errors.Is(err, os.ErrNotExist) {
				testkit.Missing(t, "this kernel's types", err)
			}
			testkit.Must(t, err)
			few, err := btf.LoadSpecFromReader(bytes.NewReader(reduced(t, testkit.Read(t, file))))
			testkit.Must(t, err)
			sameAnswers(t, kernel, few)
			arch, _, named := strings.Cut(name, "-")
			if !named {
				arch = runtime.GOARCH
			}
			arch = map[string]string{"amd64": "x86", "arm64": "arm64"}[arch]
			for _, object := range []string{"kernel", "sock", "result", "rules", "uringcount", "guard", "files", "lsm"} {
				relocate(t, kernel, few, object, arch)
			}
			if enumHas(kernel, "bpf_attach_type", "BPF_CGROUP_UNIX_CONNECT") {
				relocate(t, kernel, few, "unix", arch)
				relocate(t, kernel, few, "rulesunix", arch)
			} else {
				t.Log("no unix hooks")
			}
			form, err := uringFormOf(kernel)
			if err != nil {
				t.Logf("io_uring: %v", err)
				return
			}
			t.Logf("io_uring: %s", form)
			relocate(t, kernel, few, "uring", arch, form.programs()...)
		})
	}
}

var reloType = regexp.MustCompile(`, (?:Struct|Union|Typedef)?:?"([^"]*)"`)

// relocate fits the programs of an object to a kernel's types (all, if none is named). A
// type with a form in its name may be absent if another form of it is there, or if the form is
// "later": older kernels have no such thing.
func relocate(t *testing.T, kernel, few *btf.Spec, object, arch string, only ...string) {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpec(fmt.Sprintf("internal/objects/%s_%s_bpfel.o", object, arch))
	testkit.Must(t, err)
	if len(only) == 0 {
		for name := range spec.Programs {
			only = append(only, name)
		}
	}
	for _, name := range only {
		p := spec.Programs[name]
		if point, ok := strings.CutPrefix(p.SectionName, "tp_btf/"); ok {
			if err := kernel.TypeByName("btf_trace_"+point, new(*btf.Typedef)); err != nil {
				t.Errorf("%s %s: %v", object, name, err)
			}
		}
		found := map[string]bool{}
		all := relocations(t, kernel, p.Instructions)
		if f := relocations(t, few, p.Instructions); !maps.Equal(f, all) {
			t.Errorf("%s %s: with few types %v, with all %v", object, name, f, all)
		}
		for relo, is := range all {
			ok := is.Constant != btf.COREBadRelocationSentinel
			m := reloType.FindStringSubmatch(relo)
			if m == nil {
				t.Fatalf("no type in %s", relo)
			}
			base, form, forms := strings.Cut(m[1], "___")
			if form == "later" {
				continue
			}
			if !forms && !ok {
				t.Errorf("%s %s: this kernel has not: %s", object, name, relo)
			} else if forms {
				found[base] = found[base] || ok
			}
		}
		for base, ok := range found {
			if !ok {
				t.Errorf("%s %s: no form of struct %s fits this kernel", object, name, base)
			}
		}
	}
}

// sameAnswers compares what the loader finds out in few types and in all.
func sameAnswers(t *testing.T, kernel, few *btf.Spec) {
	t.Helper()
	answers := func(kernel *btf.Spec) (out []string) {
		form, err := uringFormOf(kernel)
		out = append(out, fmt.Sprint(form, err))
		for _, f := range slices.Concat(lookups...) {
			out = append(out, fmt.Sprint(f.function, fits(kernel, f)))
		}
		for _, p := range parts {
			out = append(out, fmt.Sprint(p.name, p.there(kernel)))
		}
		for _, n := range needs {
			out = append(out, fmt.Sprint(n.helper, enumHas(kernel, "bpf_func_id", "BPF_FUNC_"+n.helper)))
		}
		for _, name := range slices.Sorted(maps.Keys(wantedNames())) {
			if hook, ok := strings.CutPrefix(name, "bpf_lsm_"); ok {
				params, err := hookParams(kernel, hook)
				out = append(out, fmt.Sprint(hook, len(params), pointsTo(params, 0, "dentry"), err))
			}
		}
		count, err := readPreemptCount(kernel)
		return append(out, fmt.Sprint(count, err))
	}
	if f, all := answers(few), answers(kernel); !slices.Equal(f, all) {
		t.Errorf("with few types %q,\nwith all %q", f, all)
	}
}

// relocated is what an instruction has become.
type relocated struct {
	asm.OpCode
	Offset   int16
	Constant int64
}

// relocations says what becomes of each reference to a type of the kernel.
func relocations(t *testing.T, kernel *btf.Spec, insns asm.Instructions) map[string]relocated {
	t.Helper()
	var relos []*btf.CORERelocation
	var at []asm.Instruction
	for it := insns.Iterate(); it.Next(); {
		if r := btf.CORERelocationMetadata(it.Ins); r != nil {
			relos, at = append(relos, r), append(at, *it.Ins)
		}
	}
	if len(relos) == 0 {
		return nil
	}
	fixups, err := btf.CORERelocate(relos, []*btf.Spec{kernel}, binary.LittleEndian, func(btf.Type) (btf.TypeID, error) { return 1, nil })
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]relocated{}
	for i := range fixups {
		if err := fixups[i].Apply(&at[i]); err != nil {
			t.Fatal(err)
		}
		out[relos[i].String()] = relocated{at[i].OpCode, at[i].Offset, at[i].Constant}
	}
	return out
}
