package main

import (
	"slices"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// TestForks: a process is below the nearest one that the page has, also where one in between did nothing.
func TestForks(t *testing.T) {
	var f forks
	for i, p := range []struct {
		parent uint32
		lines  uint64
	}{{0, 3}, {1, 0}, {2, 2}, {3, 1}, {1, 4}, {0, 1}} {
		f.add(&schemas.ProcessEvent{Process: uint32(i + 1), Parent: p.parent, Lines: p.lines})
	}
	for i, seq := range []uint64{1, 3, 5, 6, 10} {
		f.meet(i, seq)
		f.meet(i, seq)
	}
	depths, above := f.tree()
	if !slices.Equal(depths, []int{0, 1, 2, 1, 0}) || !slices.Equal(above, []int{-1, 0, 1, 0, -1}) {
		t.Error(depths, above)
	}
	f.first = []uint64{6} // a filter took one process
	if depths, above := f.tree(); !slices.Equal(depths, []int{0}) || !slices.Equal(above, []int{-1}) {
		t.Error(depths, above)
	}
	f.add(&schemas.ProcessEvent{Process: 9})
	if depths, _ := f.tree(); f.known() || depths != nil {
		t.Error("a layer with a gap is known")
	}
}
