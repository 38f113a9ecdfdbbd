package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"
)

func collect(t *testing.T, s *surface) (keys []string) {
	t.Helper()
	must(t, s.Each(func(set int, value []byte) error {
		keys = append(keys, string(rune('0'+set))+string(value))
		return nil
	}))
	return keys
}

// TestSpill compares the spilled set with a map, over enough runs that runs of
// merged runs are merged again.
func TestSpill(t *testing.T) {
	s := newSurface()
	defer s.Close()
	s.limit = 256
	want := map[string]bool{}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		set, v := r.IntN(5), fmt.Sprintf("/path/%d", r.IntN(6000))
		if r.IntN(500) == 0 {
			v += string(bytes.Repeat([]byte{'x'}, 3000)) // larger than the whole arena
		}
		want[string(rune('0'+set))+v] = true
		must(t, s.Add(set, []byte(v)))
	}
	if len(s.runs.list) == 0 || s.runs.list[0].level < 2 {
		t.Fatalf("%d runs, the first of level %d, expected level 2", len(s.runs.list), s.runs.list[0].level)
	}
	got := collect(t, s)
	if len(got) != len(want) || !sort.StringsAreSorted(got) {
		t.Fatalf("%d values, expected %d in order", len(got), len(want))
	}
	for _, k := range got {
		if !want[k] {
			t.Fatalf("%q was never added", k)
		}
	}
}

func TestTableFull(t *testing.T) {
	s := newSurface()
	defer s.Close()
	const n = tableFull*2 + 10
	for i := range n {
		must(t, s.Add(i%3, fmt.Appendf(nil, "%d", i)))
	}
	if got := collect(t, s); len(got) != n || !sort.StringsAreSorted(got) {
		t.Errorf("%d values, expected %d in order", len(got), n)
	}
}

func TestSameValueInSets(t *testing.T) {
	s := newSurface()
	defer s.Close()
	for range 3 {
		for set := range 5 {
			must(t, s.Add(set, []byte("x")))
		}
		must(t, s.Add(-1, []byte("none")))
		must(t, s.Add(1, nil))
	}
	if got := fmt.Sprint(collect(t, s)); got != "[0x 1x 2x 3x 4x]" {
		t.Errorf("got %s", got)
	}
}
