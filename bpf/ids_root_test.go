//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// What the kernel is asked for directly is what the library says.
func TestIDs(t *testing.T) {
	s := attachOwn(t, false)
	for i, l := range s.links {
		want, err := l.Info()
		testkit.Must(t, err)
		got, err := idsOf(l)
		testkit.Must(t, err)
		cgroup := uint64(0)
		if c := want.Cgroup(); c != nil {
			cgroup = c.CgroupId
		}
		if got.kind != uint32(want.Type) || got.id != uint32(want.ID) || got.program != uint32(want.Program) || cgroup != 0 && got.cgroup != cgroup {
			t.Errorf("link %d: %+v, expected %+v", i, got, want)
		}
	}
	for _, c := range s.coll {
		for name, p := range c.Programs {
			info, err := p.Info()
			testkit.Must(t, err)
			want, _ := info.ID()
			if got, err := idsOf(p); got.id != uint32(want) || err != nil {
				t.Errorf("program %s: %+v, %v, expected %d", name, got, err, want)
			}
		}
		for name, m := range c.Maps {
			info, err := m.Info()
			testkit.Must(t, err)
			want, _ := info.ID()
			if got, err := idsOf(m); got.id != uint32(want) || err != nil {
				t.Errorf("map %s: %+v, %v, expected %d", name, got, err, want)
			}
		}
	}
	if _, err := idsOf(t); err == nil {
		t.Error("what has no descriptor has numbers")
	}
	s.Close()
	if _, err := idsOf(s.progs[0]); err == nil {
		t.Error("a closed program has numbers")
	}
}
