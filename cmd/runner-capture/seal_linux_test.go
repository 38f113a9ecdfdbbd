package main

import "testing"

func TestPossibleEscapes(t *testing.T) {
	for _, c := range []struct {
		dropped map[string]uint64
		foreign uint64
		want    uint64
	}{
		{nil, 0, 0},
		{nil, 3, 0}, // every task of the scope is known: these are others
		{map[string]uint64{"openat": 9}, 3, 0},
		{map[string]uint64{"openat": 9, "move": 2}, 0, 2},
		{map[string]uint64{"fork": 1}, 3, 3},
		{map[string]uint64{"fork": 1, "move": 1}, 3, 4},
	} {
		if got := possibleEscapes(c.dropped, c.foreign); got != c.want {
			t.Errorf("dropped %v, foreign %d: %d possible escapes, want %d", c.dropped, c.foreign, got, c.want)
		}
	}
}
