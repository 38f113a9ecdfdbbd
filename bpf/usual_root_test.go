//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// The forms of an object have the same programs and maps. The usual one has no bodies, and neither it nor the one for kernels that
// have every part has variables that say what a kernel lacks: none of it can be set to something that was left out.
func TestForms(t *testing.T) {
	lacks := []string{"no_cast", "no_loop"}
	copies := []string{"copied_tasks", "copied_calls", "copy"}
	for what, o := range map[string]forms{"kernel": kernelObject, "io_uring": uringObject, "path objects": pathObjObject, "file rules": filesObject} {
		general, err := o.general()
		testkit.Must(t, err)
		for form, load := range map[string]specFunc{"usual": o.usual, "whole": o.whole} {
			spec, err := load()
			testkit.Must(t, err)
			left := lacks
			want := slices.Sorted(maps.Keys(general.Programs))
			if spec.Variables["copy"] == nil && general.Variables["copy"] != nil {
				left = slices.Concat(lacks, copies)
				want = slices.DeleteFunc(want, func(name string) bool { return strings.HasPrefix(name, "body_") || strings.HasPrefix(name, "alone_") })
			}
			if has := slices.Sorted(maps.Keys(spec.Programs)); !slices.Equal(has, want) {
				t.Errorf("%s, %s: programs %q, expected %q", what, form, has, want)
			}
			for name := range general.Variables {
				if has := spec.Variables[name] != nil; has == slices.Contains(left, name) {
					t.Errorf("%s, %s: the variable %s is there: %t", what, form, name, has)
				}
			}
			for name, m := range spec.Maps {
				if g := general.Maps[name]; !strings.HasPrefix(name, ".") && (g == nil || g.Type != m.Type || g.ValueSize != m.ValueSize || g.KeySize != m.KeySize) {
					t.Errorf("%s, %s: the map %s is another one", what, form, name)
				}
			}
		}
	}
}

// A session gets what is for it: probes that go on in a body where they have copies, and those that do all themselves elsewhere.
func TestProbesOfForms(t *testing.T) {
	for _, copies := range []copySet{{}, {tasks: true}, {calls: true}, {tasks: true, calls: true}} {
		for _, general := range []bool{false, true} {
			s := &Session{copies: copies, general: general}
			for _, o := range []forms{kernelObject, uringObject} {
				spec, err := s.read(o)
				testkit.Must(t, err)
				for name, p := range spec.Programs {
					b, has := bodies[name]
					if has && !general && !copies.any() {
						continue // the usual form has no bodies at all
					}
					if has && (p.Name == b.alone) == copies.has(name) {
						t.Errorf("copies %+v, general %t: %s is %s", copies, general, name, p.Name)
					}
					if strings.HasPrefix(name, "alone_") {
						t.Errorf("copies %+v, general %t: %s is left", copies, general, name)
					}
				}
			}
		}
	}
}

// A kernel that refuses what is made for one that has every part gets the general objects, and observes as much.
func TestUsualRefused(t *testing.T) { testRefused(t, CopiesOff, schemas.RedundantOff) }
func TestWholeRefused(t *testing.T) { testRefused(t, CopiesOn, RedundantOn) }

func testRefused(t *testing.T, copies Copies, redundant string) {
	t.Setenv(testProbes, schemas.ProbesOwn)
	refused := 0
	newCollection = func(spec *ebpf.CollectionSpec, opts ebpf.CollectionOptions) (*ebpf.Collection, error) {
		for _, name := range []string{"on_sys_exit", "on_fail_link"} {
			if spec.Programs[name] != nil && spec.Variables["no_cast"] == nil {
				refused++
				return nil, fmt.Errorf("program %s: %w", name, &ebpf.VerifierError{Cause: errors.New("not this")})
			}
		}
		return ebpf.NewCollectionWithOptions(spec, opts)
	}
	defer func() { newCollection = ebpf.NewCollectionWithOptions }()
	s := attachWith(t, Options{Copies: copies})
	if s.Loaded() != schemas.LoadedWhole || s.Redundant != redundant || s.IOUring != schemas.CaptureAttached || refused == 0 {
		t.Errorf("loaded %q, redundant %q, io_uring %q, %d refused", s.Loaded(), s.Redundant, s.IOUring, refused)
	}
	if n := opens(t, s, 23); n != 23 {
		t.Errorf("%d of 23 opens were recorded", n)
	}
}
