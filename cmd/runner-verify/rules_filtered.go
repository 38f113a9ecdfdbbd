package main

import (
	"slices"
	"sync"

	"github.com/runner-evidence/runner/cmd/internal/noise"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// The rules for the layer filtered: a set of values for each rule, and the note that counts them.

const (
	ruleFilteredLines = "filtered.lines"
	ruleFilteredNote  = "filtered.note"
)

const filteredLayerName = schemas.MemberFiltered

// noiseIDs are the rules that there can be.
var noiseIDs = sync.OnceValue(func() []string {
	ids, err := noise.IDs()
	if err != nil {
		panic("runner-verify: " + err.Error()) // the embedded table is tested
	}
	return ids
})

// noiseTables are the tables of rules by their names.
var noiseTables = sync.OnceValue(func() map[string]*noise.Table {
	tables := map[string]*noise.Table{}
	for _, name := range schemas.NoiseTables {
		t, err := noise.New(name)
		if err != nil {
			panic("runner-verify: " + err.Error()) // the embedded tables are tested
		}
		tables[name] = t
	}
	return tables
})

// filteredLayer is the last line, how many there are of its rule, and what the note can only
// contradict.
type filteredLayer struct {
	rule, value string
	values      int
	bytes       int
	kept        string // the first value that the table loader keeps
	full        bool   // of some rule there could be no more values
}

// filteredLine checks that the lines are a sorted set of names that known rules left out.
func (v *verifier) filteredLine(l *archive.Line, e *schemas.FilteredEvent) {
	f := &v.filtered
	if !e.After(f.rule, f.value) {
		v.faultFiltered(l, "%.200q of %s is a repetition, or not in byte order of rules and values", e.Value, e.Rule)
	}
	if e.Rule != f.rule {
		f.values, f.bytes = 0, 0
		if _, known := slices.BinarySearch(noiseIDs(), e.Rule); !known {
			v.faultFiltered(l, "%.200q is no rule about noise", e.Rule)
		}
	}
	f.rule, f.value = e.Rule, e.Value
	f.values, f.bytes = f.values+1, f.bytes+len(e.Value)
	if f.values == schemas.MaxFilteredValues+1 || f.bytes > schemas.MaxFilteredBytes && f.bytes-len(e.Value) <= schemas.MaxFilteredBytes {
		v.faultFiltered(l, "more than %d values of %s, or %d bytes of them", schemas.MaxFilteredValues, e.Rule, schemas.MaxFilteredBytes)
	}
	// A value that had no room is longer than what was left of it.
	f.full = f.full || f.values == schemas.MaxFilteredValues || f.bytes > schemas.MaxFilteredBytes-schemas.MaxFilteredValue
	v.filteredValue(l, e)
}

// filteredValue checks that the rule of a line leaves its value out.
func (v *verifier) filteredValue(l *archive.Line, e *schemas.FilteredEvent) {
	value, tables := []byte(e.Value), noiseTables()
	switch {
	case !noise.IsStable(e.Value) || !schemas.IsText(value):
		v.faultFiltered(l, "%.200q is not the text form of an absolute path without numbers of processes", e.Value)
	case !tables[schemas.NoiseV0].LeftOut(e.Rule, value):
		v.faultFiltered(l, "%.200q is not what %s leaves out", e.Value, e.Rule)
	case v.filtered.kept == "" && !tables[schemas.NoiseLoader].LeftOut(e.Rule, value):
		v.filtered.kept = e.Value
	}
}

func (v *verifier) faultFiltered(l *archive.Line, format string, a ...any) {
	v.add(ruleFilteredLines, l.Member, l.Number, format, a...)
}

// filteredNote checks that the note about noise counts the lines of the layer, and says nothing
// that they cannot be.
func (v *verifier) filteredNote() {
	_, there := v.members[filteredLayerName]
	lines := v.lineCount(filteredLayerName)
	n, counted := v.noteCount(schemas.NoteNoise, schemas.KeyValues)
	omitted, _ := v.noteCount(schemas.NoteNoise, schemas.KeyOmitted)
	table := v.noteFields(schemas.NoteNoise)[schemas.KeyTable]
	switch noted := v.noted(schemas.NoteNoise); {
	case there && !noted:
		v.faultHealth(ruleFilteredNote, "no note %s, but there is the member %s", schemas.NoteNoise.Code, filteredLayerName)
	case there && lines == 0:
		v.faultHealth(ruleFilteredNote, "the member %s has no line: then it is left out", filteredLayerName)
	case noted && (!counted || n != lines):
		v.faultHealth(ruleFilteredNote, "%s says values=%d, the layer has %d", schemas.NoteNoise.Code, n, lines)
	case there && !v.noted(schemas.NoteKernel):
		v.faultHealth(ruleFilteredNote, "the member %s without note %s: nothing was seen that could be left out", schemas.MemberFiltered, schemas.NoteKernel.Code)
	case omitted > 0 && !v.filtered.full:
		v.faultHealth(ruleFilteredNote, "%s says omitted=%d, but of each rule there was room for more values", schemas.NoteNoise.Code, omitted)
	case table == schemas.NoiseLoader && v.filtered.kept != "":
		v.faultHealth(ruleFilteredNote, "%s says table=%s, which keeps %.200q", schemas.NoteNoise.Code, table, v.filtered.kept)
	}
}
