package main

import (
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/noise"
	"github.com/runner-evidence/runner/cmd/internal/valueset"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// loaderRule stands for schemas.FilterLoad, which is in no table.
const loaderRule = -1

// leftOut is the layer filtered: the distinct values that each noise rule left out. Nil
// without the layer.
type leftOut struct {
	ids    []string // of rules, sorted
	places []int    // in ids, by place in the table
	loader int      // the place of schemas.FilterLoad
	values *valueset.Set

	written, omitted uint64
}

func newLeftOut(table *noise.Table) (*leftOut, error) {
	ids, err := noise.IDs()
	if err != nil {
		return nil, err
	}
	l := &leftOut{ids: ids, loader: slices.Index(ids, schemas.FilterLoad), values: valueset.New()}
	for i := range table.Len() {
		l.places = append(l.places, slices.Index(ids, table.ID(i)))
	}
	return l, nil
}

// add takes in a value that the rule at a place of the table left out.
func (l *leftOut) add(rule int, value []byte) error {
	if l == nil {
		return nil
	}
	place := l.loader
	if rule != loaderRule {
		place = l.places[rule]
	}
	if err := l.values.Add(place, noise.Stable(value)); err != nil {
		return writeError(err)
	}
	return nil
}

// write writes the lines of the layer: of each rule the first values, as many as there is room for.
func (l *leftOut) write(w *stream.Writer, runID string) error {
	if l == nil {
		return nil
	}
	rule, values, size := -1, 0, 0
	return l.values.Each(func(place int, value []byte) error {
		if place != rule {
			rule, values, size = place, 0, 0
		}
		if values == schemas.MaxFilteredValues || size+len(value) > schemas.MaxFilteredBytes {
			values = schemas.MaxFilteredValues // nothing that follows, so that what is left out is one range
			l.omitted++
			return nil
		}
		values, size = values+1, size+len(value)
		l.written++
		return w.Write(schemas.FilteredEvent{Schema: schemas.SchemaFiltered, RunID: runID, Seq: l.written - 1, Rule: l.ids[place], Value: string(value)})
	})
}

func (l *leftOut) close() {
	if l != nil {
		l.values.Close()
	}
}
