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

// The objects for the usual kernel have the programs of the general ones, without bodies and without
// variables that say what a kernel lacks: none of it can be set to something that was left out.
func TestUsualObjects(t *testing.T) {
	for what, o := range map[string]twice{"kernel": kernelObject, "io_uring": uringObject} {
		usual, err := o.usual()
		testkit.Must(t, err)
		general, err := o.general()
		testkit.Must(t, err)
		want := slices.DeleteFunc(slices.Sorted(maps.Keys(general.Programs)), func(name string) bool { return strings.HasPrefix(name, "body_") })
		if has := slices.Sorted(maps.Keys(usual.Programs)); !slices.Equal(has, want) {
			t.Errorf("%s: programs %q, expected %q", what, has, want)
		}
		for _, name := range []string{"no_cast", "no_loop", "copied_tasks", "copied_calls", "copy"} {
			if general.Variables[name] == nil || usual.Variables[name] != nil {
				t.Errorf("%s: %s is a variable of the general object and not of the usual one, expected", what, name)
			}
		}
		for name, m := range usual.Maps {
			if g := general.Maps[name]; !strings.HasPrefix(name, ".") && (g == nil || g.Type != m.Type || g.ValueSize != m.ValueSize || g.KeySize != m.KeySize) {
				t.Errorf("%s: the map %s is another one", what, name)
			}
		}
	}
}

// A kernel that refuses what is made for the usual one gets the general objects, and observes as much.
func TestUsualRefused(t *testing.T) {
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
	s := attachWith(t, Options{Copies: CopiesOff})
	if s.Loaded() != schemas.LoadedWhole || s.IOUring != schemas.CaptureAttached || refused == 0 {
		t.Errorf("loaded %q, io_uring %q, %d refused", s.Loaded(), s.IOUring, refused)
	}
	if n := opens(t, s, 23); n != 23 {
		t.Errorf("%d of 23 opens were recorded", n)
	}
}
