package main

import "github.com/runner-evidence/runner/schemas"

// forks is who started whom, as the layer process has it.
type forks struct {
	list  []birth
	lines uint64   // of the kernel layer, of all in list
	first []uint64 // a kernel line of each process of the model
	over  bool     // there are more than are kept
}

// birth is one process of the layer. Its number is its place in the list, from 1.
type birth struct {
	parent uint32
	from   uint64 // the number of its first kernel line
	lines  uint64
}

func (f *forks) add(e *schemas.ProcessEvent) {
	if e.Process != uint32(len(f.list)+1) || e.Parent >= e.Process || len(f.list) >= 4*maxProcesses {
		f.over = true
		return
	}
	f.list = append(f.list, birth{e.Parent, f.lines, e.Lines})
	f.lines += e.Lines
}

// meet notes a kernel line of a process of the model.
func (f *forks) meet(index int, seq uint64) {
	if index == len(f.first) && index < maxProcesses {
		f.first = append(f.first, seq)
	}
}

// known reports whether the record has the whole layer.
func (f *forks) known() bool { return len(f.list) > 0 && !f.over }

// tree is the depth of each process of the model, and the nearest process of the model above it,
// -1 for none. Both are empty if the record does not say it.
func (f *forks) tree() (depths, above []int) {
	if !f.known() {
		return nil, nil
	}
	shown := make([]int, len(f.list)+1) // of each number, the nearest process of the model: itself, or above
	shown[0] = -1
	next := 0
	for i, b := range f.list {
		up := shown[b.parent]
		shown[i+1] = up
		if next < len(f.first) && b.from <= f.first[next] && f.first[next] < b.from+b.lines {
			depth := 0
			if up >= 0 {
				depth = depths[up] + 1
			}
			depths, above = append(depths, depth), append(above, up)
			shown[i+1] = next
			next++
		}
	}
	return depths, above
}
