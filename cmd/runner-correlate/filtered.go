package main

import (
	"github.com/runner-evidence/runner/schemas"
)

// filtered is what is known of the layer filtered, whose lines pass through as they are.
type filtered struct {
	lines       uint64
	rule, value string            // of the last line
	values      map[string]uint64 // by rule
}

// filteredLine checks a line of the layer filtered.
func (j *joiner) filteredLine(line []byte) error {
	f := &j.filtered
	if j.events != 2 || j.lines > 0 || j.tree != nil && j.tree.records > 0 || len(j.stages) > 0 {
		return j.refuse("a line of the layer %s is not between the run events and the kernel lines", schemas.LayerFiltered)
	}
	e, err := schemas.ParseFiltered(line)
	switch {
	case err != nil:
		return j.refuse("%v", err)
	case e.Seq != f.lines:
		return j.refuse("filtered line has seq %d, expected %d", e.Seq, f.lines)
	case !e.After(f.rule, f.value):
		return j.refuse("filtered line %d is a repetition or not in byte order of rules and values", e.Seq)
	}
	if f.values == nil {
		f.values = map[string]uint64{}
	}
	f.lines++
	f.rule, f.value = e.Rule, e.Value
	f.values[e.Rule]++
	return nil
}

// balanceFiltered compares the layer filtered with what runner-normalize counted: each rule has
// as many values as it left out opens at most, and one at least if there is a layer.
func (j *joiner) balanceFiltered() error {
	h := j.stages[1]
	var noted schemas.NoteValues
	for _, text := range h.Notes {
		if v, err := schemas.NoteNoise.Parse(text); err == nil {
			noted = v
		}
	}
	values, _ := noted.Count(schemas.KeyValues)
	if values != j.filtered.lines {
		return j.refuse("%s wrote %d values of the layer %s, the stream has %d", h.Stage, values, schemas.LayerFiltered, j.filtered.lines)
	}
	for rule, n := range j.filtered.values {
		if n > h.Filtered[rule] {
			return j.refuse("%s filtered %d events by %s, the layer %s has %d values of it", h.Stage, h.Filtered[rule], rule, schemas.LayerFiltered, n)
		}
	}
	return nil
}
