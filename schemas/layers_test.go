package schemas

import (
	"slices"
	"testing"
)

// TestLayerTable: every row is whole, and its member lies where the archive's order
// has it, after the rows above.
func TestLayerTable(t *testing.T) {
	seen := map[string]bool{}
	last := ""
	for i, l := range Layers {
		for _, s := range []string{l.Name, l.Member, l.Schema, l.File, l.Note.Code} {
			if s == "" || seen[s] {
				t.Errorf("%s: %q is empty or in another row too", l.Name, s)
			}
			seen[s] = true
		}
		if l.Member <= last {
			t.Errorf("%s is not after %s", l.Member, last)
		}
		last = l.Member
		if l.Name == LayerTimes && i != len(Layers)-1 {
			t.Errorf("the layer %s is about those above it, so it is the last row", l.Name)
		}
		if l.Log != nil && (l.Parse == nil || l.Counter == "" || l.MaxBytes == 0 || !slices.Contains(EnvKeys(), l.Log.Env)) {
			t.Errorf("%s is made from a log and lacks a parser, a counter, a bound or a variable", l.Name)
		}
		if l.Log != nil && (l.Log.Title == "" || l.Log.MayBeEmpty() && !l.Optional || len(l.Log.Whys) == 0 ||
			l.Log.GapStatus != CorrelationPartial && l.Log.GapStatus != CorrelationFailed) {
			t.Errorf("%s: its log does not say what its codes are: %+v", l.Name, l.Log)
		}
		if f, ok := MemberOf(l.Member); !ok || !f.Lines || f.Schema != l.Schema || f.Optional != l.Optional {
			t.Errorf("%s: its form is %+v", l.Name, f)
		}
		if got, ok := LayerOf(l.Name); !ok || got.Member != l.Member {
			t.Errorf("LayerOf(%s) = %v", l.Name, got.Name)
		}
	}
	if _, ok := LayerOf("none"); ok {
		t.Error("LayerOf knows a layer that is not there")
	}
}

// TestMembers: the manifest is first, the others follow in byte order.
func TestMembers(t *testing.T) {
	list := Members()
	if list[0].Member != MemberManifest || !slices.IsSortedFunc(list[1:], func(a, b Form) int {
		return slices.Compare([]byte(a.Member), []byte(b.Member))
	}) {
		t.Errorf("archive order is %v", list)
	}
	if _, ok := MemberOf(""); ok {
		t.Error("a form that lives only in pipes is a member")
	}
}
