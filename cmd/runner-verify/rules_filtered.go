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

// filteredLayer is the last line, and how many there are of its rule.
type filteredLayer struct {
	rule, value string
	values      int
	bytes       int
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
	if e.Value[0] != '/' || !isText([]byte(e.Value)) {
		v.faultFiltered(l, "%.200q is not the text form of an absolute path", e.Value)
	}
}

func (v *verifier) faultFiltered(l *archive.Line, format string, a ...any) {
	v.add(ruleFilteredLines, l.Member, l.Number, format, a...)
}

// filteredNote checks that the note about noise counts the lines of the layer.
func (v *verifier) filteredNote() {
	_, there := v.members[filteredLayerName]
	lines := v.lineCount(filteredLayerName)
	n, counted := v.noteCount(schemas.NoteNoise, schemas.KeyValues)
	switch noted := v.noted(schemas.NoteNoise); {
	case there && !noted:
		v.faultHealth(ruleFilteredNote, "no note %s, but there is the member %s", schemas.NoteNoise.Code, filteredLayerName)
	case there && lines == 0:
		v.faultHealth(ruleFilteredNote, "the member %s has no line: then it is left out", filteredLayerName)
	case noted && (!counted || n != lines):
		v.faultHealth(ruleFilteredNote, "%s says values=%d, the layer has %d", schemas.NoteNoise.Code, n, lines)
	}
}
