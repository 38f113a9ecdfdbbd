package valueset

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever fits in memory, the set gives every value once, in order.
func TestSet(t *testing.T) {
	for _, limit := range []int{arenaSize, 4 << 10, 200} {
		for _, n := range []int{0, 1, 1000, 30_000} {
			s := New()
			s.limit = limit
			r := rand.New(rand.NewPCG(1, uint64(n)))
			want := map[string]bool{}
			for range n {
				set, value := r.IntN(5), fmt.Sprintf("v%d", r.IntN(n))
				want[string(byte(set))+value] = true
				if err := s.Add(set, []byte(value)); err != nil {
					t.Fatal(err)
				}
			}
			for _, nothing := range []error{s.Add(-1, []byte("x")), s.Add(0, nil), s.Add(1, []byte{})} {
				if nothing != nil {
					t.Fatal(nothing)
				}
			}
			if limit == 200 && n == 30_000 && s.runs.list[0].level < 2 {
				t.Errorf("merged runs were never merged again: %d runs, level %d", len(s.runs.list), s.runs.list[0].level)
			}
			var got []string
			err := s.Each(func(set int, value []byte) error {
				got = append(got, string(byte(set))+string(value))
				return nil
			})
			if err != nil || len(got) != len(want) || !slices.IsSorted(got) {
				t.Errorf("limit %d: %d of %d values, sorted %t, %v", limit, len(got), len(want), slices.IsSorted(got), err)
			}
			for _, k := range got {
				if !want[k] {
					t.Errorf("%q was not added", k)
				}
			}
			s.Close()
		}
	}
}

// A set that a goroutine fills is the same set, whatever the batches.
func TestAsyncWriter(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	s, b := New(), NewAsyncWriter()
	defer s.Close()
	b.set.limit = 1 << 20
	for range 100_000 {
		set, value := r.IntN(5), fmt.Appendf(nil, "/some/where/%d", r.IntN(50_000))
		if r.IntN(20_000) == 0 {
			value = bytes.Repeat([]byte{'x'}, r.IntN(400_000))
		}
		for range 1 + r.IntN(2) {
			if err := errors.Join(s.Add(set, value), b.Add(set, value), b.Add(-1, value), b.Add(set, nil)); err != nil {
				t.Fatal(err)
			}
			if r.IntN(4) == 0 { // the same value of another set
				set = (set + 1) % 5
			}
		}
	}
	var want, got []string
	to := func(out *[]string) func(int, []byte) error {
		return func(set int, value []byte) error {
			*out = append(*out, string(byte(set))+string(value))
			return nil
		}
	}
	if err := errors.Join(s.Each(to(&want)), b.Each(to(&got))); err != nil || !slices.Equal(want, got) {
		t.Errorf("%d values, expected %d, %v", len(got), len(want), err)
	}
	b.Close()
	b.Close()
	NewAsyncWriter().Close()
}

// An error comes up and stays, and nobody waits for a batch in vain.
func TestAsyncWriterFails(t *testing.T) {
	t.Setenv("TMPDIR", "/nowhere/at/all")
	b := NewAsyncWriter()
	defer b.Close()
	b.set.limit = 1000
	var err error
	for i := range 100_000 {
		if err = b.Add(0, fmt.Appendf(nil, "/some/where/%d", i)); err != nil {
			break
		}
	}
	if err == nil || b.Each(func(int, []byte) error { return nil }) == nil || b.Wait() == nil {
		t.Errorf("values vanish without an error: %v", err)
	}
}

// Values with long beginnings in common, of which few are like the others, come in order, with and without scratch files.
func TestCommonBeginnings(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, limit := range []int{arenaSize, 64 << 10} {
		s := New()
		s.limit = limit
		want := map[string]bool{}
		for range 20_000 {
			value := []byte("/some/where/that/is/long")
			for range r.IntN(4) {
				value = fmt.Appendf(value, "/more/of/it/%d", r.IntN(30)*r.IntN(2))
			}
			if r.IntN(500) == 0 {
				value = append(value[:r.IntN(len(value))], 0)
			}
			if r.IntN(20) == 0 {
				value = value[:1+r.IntN(len(value))]
			}
			set := r.IntN(2)
			want[string(byte(set))+string(value)] = true
			for range 2 {
				if err := s.Add(set, value); err != nil {
					t.Fatal(err)
				}
			}
		}
		var got []string
		if err := s.Each(func(set int, value []byte) error {
			got = append(got, string(byte(set))+string(value))
			return nil
		}); err != nil || !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Errorf("limit %d: %d of %d values, sorted %t, %v", limit, len(got), len(want), slices.IsSorted(got), err)
		}
		s.Close()
	}
}

func TestLongValues(t *testing.T) {
	s := New()
	defer s.Close()
	for i := range 20 {
		if err := s.Add(0, bytes.Repeat([]byte{byte('a' + i)}, 1<<20)); err != nil {
			t.Fatal(err)
		}
		// These differ at their very end.
		if err := s.Add(1, append(bytes.Repeat([]byte{'x'}, 1<<19), byte('a'+i))); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	if err := s.Each(func(set int, v []byte) error {
		if set == 0 && (len(v) != 1<<20 || v[0] != byte('a'+n)) || set == 1 && (len(v) != 1<<19+1 || v[1<<19] != byte('a'+n-20)) {
			t.Errorf("value %d is %d bytes of %c", n, len(v), v[0])
		}
		n++
		return nil
	}); err != nil || n != 40 {
		t.Errorf("%d values, %v", n, err)
	}
}

// More values than the table has slots for, though they would fit the arena.
func TestTableFull(t *testing.T) {
	s := New()
	defer s.Close()
	const n = tableFull*2 + 10
	for i := range n {
		if err := s.Add(i%3, fmt.Appendf(nil, "%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	got := 0
	if err := s.Each(func(int, []byte) error { got++; return nil }); err != nil || got != n {
		t.Errorf("%d values, expected %d, %v", got, n, err)
	}
}

// A small set is as it was when it grows, by values or by their bytes, and no more than once.
func TestGrow(t *testing.T) {
	for name, c := range map[string]struct{ n, long int }{"values": {full(smallTable) + 1, 1}, "bytes": {3, smallArena / 2}} {
		t.Run(name, func(t *testing.T) {
			for spare.Get() != nil { // or its memory is taken
			}
			s := New()
			defer s.Close()
			for range 2 {
				for i := range c.n {
					if err := s.Add(i%2, fmt.Appendf(nil, "/d%d/%0*d", i%7, c.long, i)); err != nil {
						t.Fatal(err)
					}
					if want := map[bool]int{true: tableSize, false: smallTable}[len(s.entries) > full(smallTable) || len(s.arena) > smallArena]; len(s.table) != want {
						t.Fatalf("%d slots for %d values of %d bytes, expected %d", len(s.table), len(s.entries), len(s.arena), want)
					}
				}
			}
			got := 0
			if err := s.Each(func(int, []byte) error { got++; return nil }); err != nil || got != c.n || len(s.runs.list) > 0 {
				t.Errorf("%d values, expected %d, %v", got, c.n, err)
			}
		})
	}
}

// More directories than there is room for.
func TestFrontsFull(t *testing.T) {
	for _, long := range []int{0, 100} {
		s := New()
		const n = frontsFull*2 + 10
		for i := range n {
			for range 2 {
				if err := s.Add(i%2, fmt.Appendf(nil, "/%0*d/x", long, i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		got, last := 0, ""
		if err := s.Each(func(set int, value []byte) error {
			key := string(byte(set)) + string(value)
			if key <= last {
				t.Fatalf("%q after %q", key, last)
			}
			last = key
			got++
			return nil
		}); err != nil || got != n {
			t.Errorf("%d values, expected %d, %v", got, n, err)
		}
		s.Close()
	}
}

// Keys are put into byte order whatever they share and wherever they end: prefixes of
// each other, zero bytes, all lengths around the eight that are compared at once.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		s := New()
		want := map[string]bool{}
		start := bytes.Repeat([]byte{'/'}, r.IntN(20))
		chars := 4 + r.IntN(3) // also slashes, and what sorts before them
		for range 1 + r.IntN(600) {
			v := append(bytes.Clone(start), bytes.Repeat([]byte{'x'}, r.IntN(3)*8)...)
			for range 1 + r.IntN(12) {
				v = append(v, "\x00\x00a\xff/-"[r.IntN(chars)])
			}
			want["\x01"+string(v)] = true
			if err := s.Add(1, v); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		if err := s.Each(func(set int, v []byte) error {
			got = append(got, string(byte(set))+string(v))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("%q", got)
		}
		s.Close()
	}
}

func BenchmarkAdd(b *testing.B) {
	const n = 1 << 16
	var values [n][]byte
	for i := range values {
		values[i] = fmt.Appendf(nil, "/home/user/src/project/module_%d/internal/package/%x", i%13, uint64(i)*0x9e3779b97f4a7c15)
	}
	b.Run("seen", func(b *testing.B) {
		s := New()
		defer s.Close()
		for i := 0; b.Loop(); i += 7919 {
			if err := s.Add(0, values[i%n]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sorted", func(b *testing.B) {
		for b.Loop() {
			s := New()
			for _, v := range values {
				if err := s.Add(0, v); err != nil {
					b.Fatal(err)
				}
			}
			s.sort()
			s.Close()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
	})
}
