package main

import (
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/fold"
	"github.com/runner-evidence/runner/schemas"
)

// surface collects the capability surface of one run: names that differ in each run are folded. Of more
// values than are ever listed, it keeps those that come first in their order.
type surface struct {
	folds *fold.Set
	list  []entry
}

// maxSurface is one more than the values at which seen begins to leave values out.
const maxSurface = 2*maxValues + 1

// foldedAs are the sets whose values are folded, and the kind of items as which they are.
var foldedAs = map[string]string{schemas.SurfaceSets[0]: schemas.ItemCreate, schemas.SignalNetwork: schemas.ItemEndpointOut, schemas.SignalProcessExecs: schemas.ItemExec}

// take adds a value.
func (s *surface) take(set int, value []byte) error {
	e := entry{set, string(value)}
	if kind, is := foldedAs[schemas.SurfaceSets[set]]; is {
		e.value = s.folds.Value(kind, e.value)
	}
	if s.list = append(s.list, e); len(s.list) >= 2*maxSurface {
		s.list = s.sorted()
	}
	return nil
}

// sorted are the values, each once, in their order.
func (s *surface) sorted() []entry {
	slices.SortFunc(s.list, entry.compare)
	list := slices.Compact(s.list)
	return list[:min(len(list), maxSurface)]
}
