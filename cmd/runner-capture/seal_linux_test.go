package main

import (
	"testing"

	"github.com/runner-evidence/runner/bpf"
)

func TestPossibleEscapes(t *testing.T) {
	for _, c := range []struct {
		dropped, missed map[string]uint64
		foreign         uint64
		want            uint64
	}{
		{nil, nil, 0, 0},
		{nil, nil, 3, 0}, // every task of the scope is known: these are others
		{map[string]uint64{"openat": 9}, map[string]uint64{"sys_exit": 7, "task_exit": 2}, 3, 0},
		{map[string]uint64{"openat": 9, "move": 2}, nil, 0, 2},
		{map[string]uint64{"fork": 1}, nil, 3, 3},
		{map[string]uint64{"fork": 1, "move": 1}, nil, 3, 4},
		{nil, map[string]uint64{"exec": 2}, 3, 3},
		{nil, map[string]uint64{"fork": 1, "move": 2}, 3, 5},
		{map[string]uint64{"move": 1}, map[string]uint64{"move": 2}, 3, 3},
	} {
		if got := possibleEscapes(bpf.Stats{DroppedByOp: c.dropped, Missed: c.missed}, c.foreign); got != c.want {
			t.Errorf("dropped %v, missed %v, foreign %d: %d possible escapes, want %d", c.dropped, c.missed, c.foreign, got, c.want)
		}
	}
}
