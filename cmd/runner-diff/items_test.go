package main

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/fold"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// operation is what a collector is told.
type operation struct {
	key
	by actor
}

// randomOperations are on few or on many items.
func randomOperations(r *rand.Rand, n int) []operation {
	list := make([]operation, n)
	for i := range list {
		o := &list[i]
		o.kind = uint8(r.IntN(len(schemas.CapabilityKinds)))
		o.value = fmt.Sprintf("/dir/%d", r.IntN(1+n/2))
		o.how = []string{"", "from", "to", "ipv4 \"datagram\""}[r.IntN(4)]
		o.by = actor{fmt.Sprintf("/bin/p%d", r.IntN(9)), []string{"", "call-1", "call-2"}[r.IntN(3)]}
		if r.IntN(50) == 0 {
			o.value += strings.Repeat("x", r.IntN(2*blockBytes/8))
		}
	}
	return list
}

// sideOfOperations takes operations.
func sideOfOperations(list []operation) *side {
	s := newSide()
	c := &collector{folds: &fold.Set{}, to: s}
	for _, o := range list {
		c.add(o.kind, o.value, o.how, o.by, 1, 1)
	}
	s.runs = []run{{Archive: "x"}}
	return s
}

// TestItems: the store gives what a plain map of the same operations has, in any order of them.
func TestItems(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 12 {
		list := randomOperations(r, 1<<n)
		want := map[key]map[actor]uint64{}
		for _, o := range list {
			if want[o.key] == nil {
				want[o.key] = map[actor]uint64{}
			}
			want[o.key][o.by]++
		}
		s := sideOfOperations(list)
		keys := slices.SortedFunc(maps.Keys(want), func(a, b key) int { return compareKeys(&a, &b) })
		sorted := s.items.sorted()
		if len(sorted) != len(keys) {
			t.Fatalf("%d items, expected %d", len(sorted), len(keys))
		}
		for at, i := range sorted {
			if i.key != keys[at] || s.items.get(i.key) != i {
				t.Fatalf("item %d is %v, expected %v", at, i.key, keys[at])
			}
			sum := i.more
			for _, w := range i.who {
				if sum += w.Count; w.Count != want[i.key][*w.actor] {
					t.Errorf("%v by %v: %d, expected %d", i.key, *w.actor, w.Count, want[i.key][*w.actor])
				}
			}
			all := uint64(0)
			for _, count := range want[i.key] {
				all += count
			}
			if i.count != all || sum != all || len(i.who) != min(maxWho, len(want[i.key])) {
				t.Errorf("%v: %d operations, %d of actors, expected %d", i.key, i.count, sum, all)
			}
		}
		if s.items.get(key{0, "/not/there", ""}) != nil {
			t.Error("an item that is not there")
		}
		var one, other bytes.Buffer
		testkit.Must(t, reportOf(t, s).write(&one))
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		testkit.Must(t, reportOf(t, sideOfOperations(list)).write(&other))
		if !bytes.Equal(one.Bytes(), other.Bytes()) {
			t.Error("another order of the operations gives another report")
		}
	}
}

func reportOf(t *testing.T, s *side) *report {
	t.Helper()
	empty := newSide()
	empty.runs = []run{{Archive: "y"}}
	c, err := compare(empty, s, nil, func(*key, string) (string, error) { return "", nil })
	testkit.Must(t, err)
	return newReport(c, &Options{Folds: &fold.Set{}})
}

// TestReportEntries: what is written entry by entry is what the document's type says.
func TestReportEntries(t *testing.T) {
	r := reportOf(t, sideOfOperations(randomOperations(rand.New(rand.NewPCG(5, 6)), 5000)))
	var got bytes.Buffer
	testkit.Must(t, r.write(&got))
	for i := range r.added {
		x := &r.added[i]
		e := entry{Kind: x.name(), Group: x.group, Value: x.value, How: x.how, Blocks: x.blocks, In: x.in, Of: x.of, Count: x.count, Who: []who{}, Others: x.more, Fingerprint: x.fingerprint()}
		for _, w := range x.who {
			e.Who = append(e.Who, who{w.Executable, w.ToolCall, w.Count})
		}
		r.Added = append(r.Added, e)
	}
	want, err := schemas.Marshal(r)
	testkit.Must(t, err)
	if !bytes.Equal(got.Bytes(), append(inert(want), '\n')) {
		t.Errorf("%.500s\n%.500s", &got, want)
	}
}
