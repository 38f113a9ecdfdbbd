//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf/btf"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The library takes the types that it is given.
func TestGiveTypes(t *testing.T) {
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(reduced(t, objectTypes(t))))
	testkit.Must(t, err)
	cache := btf.NewCache()
	if !give(cache, spec) {
		t.Fatal("this release of cilium/ebpf keeps the types of the kernel elsewhere: see give")
	}
	if got, err := cache.Kernel(); got != spec || err != nil {
		t.Errorf("%p %v, expected %p", got, err, spec)
	}
}

// What is loaded with few types is what is loaded with all: each program has the same instructions, and what was found out about
// the kernel is the same.
func TestSessionWithFewTypes(t *testing.T) {
	loaded := func(opt Options) (out []string) {
		s := attachWith(t, opt)
		defer s.Close()
		for _, c := range s.coll {
			for name, p := range c.Programs {
				info, err := p.Info()
				testkit.Must(t, err)
				out = append(out, name+" "+info.Tag)
			}
		}
		slices.Sort(out)
		return append(out, s.Loaded(), s.IOUring, s.IOUringForm, s.Unix, s.Results, s.PathObjects, s.Redundant, s.Preemption.String())
	}
	for _, opt := range []Options{{}, {Copies: CopiesOn}, {Without: Cast}, {Without: Cast | Loop}, {Rules: ruleSet("allow")}} {
		few := loaded(opt)
		read := readFewTypes
		readFewTypes = func() (*btf.Spec, error) { return nil, errors.New("not now") }
		all := loaded(opt)
		readFewTypes = read
		if !slices.Equal(few, all) {
			t.Errorf("%+v:\n%q with few types,\n%q with all", opt, few, all)
		}
		t.Logf("%d programs and facts", len(all))
	}
	if _, err := readFewTypes(); err != nil {
		t.Errorf("this kernel's types: %v", err)
	}
}

func reduced(t testing.TB, raw []byte) []byte {
	t.Helper()
	few, err := reduceTypes(raw, wantedNames())
	testkit.Must(t, err)
	return few
}

// All types keep their numbers, and those with wanted names are as they were.
func TestFewTypes(t *testing.T) {
	raw, err := os.ReadFile("/sys/kernel/btf/vmlinux")
	if err != nil {
		testkit.Missing(t, "this kernel's types", err)
	}
	few, err := btf.LoadSpecFromReader(bytes.NewReader(reduced(t, raw)))
	testkit.Must(t, err)
	all, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	testkit.Must(t, err)
	found := 0
	for name := range wantedNames() {
		want, err := all.AnyTypesByName(name)
		if err != nil {
			continue // this kernel has none
		}
		got, err := few.AnyTypesByName(name)
		testkit.Must(t, err)
		if len(got) != len(want) {
			t.Errorf("%s: %d types, expected %d", name, len(got), len(want))
			continue
		}
		for i := range want {
			found++
			a, errA := all.TypeID(want[i])
			b, errB := few.TypeID(got[i])
			if g, w := formOf(got[i]), formOf(want[i]); a != b || errA != nil || errB != nil || g != w {
				t.Errorf("%s has number %d, expected %d: %s, expected %s", name, b, a, testkit.Clip(g), testkit.Clip(w))
			}
		}
	}
	if found < len(wantedNames())/4 {
		t.Errorf("only %d types were compared", found)
	}
}

// formOf writes a type with all that it is made of; of what it points to, the kind and the name.
func formOf(typ btf.Type) string {
	name := fmt.Sprintf("%T %s", typ, typ.TypeName())
	members := func(size uint32, list []btf.Member) string {
		text := fmt.Sprintf("%s %d {", name, size)
		for _, m := range list {
			text += fmt.Sprintf("%s %d %d %s; ", m.Name, m.Offset, m.BitfieldSize, formOf(m.Type))
		}
		return text + "}"
	}
	switch t := typ.(type) {
	case *btf.Struct:
		return members(t.Size, t.Members)
	case *btf.Union:
		return members(t.Size, t.Members)
	case *btf.Pointer:
		for at := t.Target; ; {
			switch q := at.(type) {
			case *btf.Const:
				name, at = name+" const", q.Type
				continue
			case *btf.Volatile:
				name, at = name+" volatile", q.Type
				continue
			case *btf.FuncProto:
				return name + formOf(q)
			}
			return fmt.Sprintf("%s to %T %s", name, at, at.TypeName())
		}
	case *btf.FuncProto:
		text := name + "("
		for _, p := range t.Params {
			text += p.Name + " " + shellOf(p.Type) + ", "
		}
		return text + ") " + shellOf(t.Return)
	case *btf.Func:
		return name + formOf(t.Type)
	case *btf.Array:
		return fmt.Sprintf("[%d]%s", t.Nelems, formOf(t.Type))
	case *btf.Enum:
		return fmt.Sprintf("%s %d %v", name, t.Size, t.Values)
	case *btf.Int:
		return fmt.Sprintf("%s %d %v", name, t.Size, t.Encoding)
	}
	if to := btf.UnderlyingType(typ); to != typ {
		return name + " " + formOf(to)
	}
	return name
}

// shellOf is the kind and the name.
func shellOf(typ btf.Type) string {
	if p, ok := typ.(*btf.Pointer); ok {
		return formOf(p)
	}
	return fmt.Sprintf("%T %s", typ, typ.TypeName())
}

// objectTypes are those of an object. Their format is the kernel's.
func objectTypes(t testing.TB) []byte {
	t.Helper()
	f, err := elf.Open("internal/objects/kernel_x86_bpfel.o")
	testkit.Must(t, err)
	defer f.Close()
	types, err := f.Section(".BTF").Data()
	testkit.Must(t, err)
	return types
}

// Types that are not as described are an error, and never a crash.
func FuzzFewTypes(f *testing.F) {
	b, err := btf.NewBuilder([]btf.Type{
		&btf.Struct{Name: "task_struct___flavor", Size: 24, Members: []btf.Member{
			{Name: "flags", Type: &btf.Array{Index: &btf.Int{Name: "int", Size: 4}, Type: &btf.Typedef{Name: "bool", Type: &btf.Int{Name: "_Bool", Size: 1}}, Nelems: 8}},
			{Name: "mm", Type: &btf.Pointer{Target: &btf.Const{Type: &btf.Struct{Name: "mm_struct", Size: 8, Members: []btf.Member{{Name: "x", Type: &btf.Int{Size: 8}}}}}}, Offset: 64},
		}},
		&btf.Func{Name: "filename_lookup", Type: &btf.FuncProto{Return: &btf.Int{Size: 4}, Params: []btf.FuncParam{{Name: "a", Type: &btf.Pointer{Target: &btf.Fwd{Name: "path"}}}}}},
		&btf.Enum{Name: "bpf_func_id", Size: 4, Values: []btf.EnumValue{{Name: "BPF_FUNC_loop", Value: 1}}},
		&btf.Enum{Name: "other", Size: 8, Values: []btf.EnumValue{{Name: "ONE", Value: 1}}},
	}, nil)
	testkit.Must(f, err)
	types, err := b.Marshal(nil, &btf.MarshalOptions{Order: binary.LittleEndian})
	testkit.Must(f, err)
	f.Add(types)
	f.Add(reduced(f, types))
	f.Add(types[:40])
	f.Fuzz(func(t *testing.T, raw []byte) {
		few, err := reduceTypes(raw, wantedNames())
		if err != nil {
			return
		}
		if _, err := reduceTypes(few, wantedNames()); err != nil {
			t.Errorf("what was made is refused: %v", err)
		}
	})
}
