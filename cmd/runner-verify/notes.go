package main

import (
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// noteTexts are the texts of the notes of one kind, without the code.
func (v *verifier) noteTexts(n *schemas.Note) []string {
	var out []string
	for _, note := range v.health.Notes {
		if code, text, ok := schemas.CutNote(note); ok && code == n.Code {
			out = append(out, text)
		}
	}
	return out
}

// noted reports whether there is a note of one kind.
func (v *verifier) noted(n *schemas.Note) bool { return len(v.noteTexts(n)) > 0 }

// noteFields are the key=value words of the first note of one kind, whoever wrote
// it. Empty without the note.
func (v *verifier) noteFields(n *schemas.Note) map[string]string {
	texts := v.noteTexts(n)
	if len(texts) == 0 {
		return nil
	}
	return schemas.NoteWords(texts[0])
}

// noteCount is a count in the first note of one kind; false without it.
func (v *verifier) noteCount(n *schemas.Note, key string) (uint64, bool) {
	return schemas.NoteValues{{Key: key, Value: v.noteFields(n)[key]}}.Count(key)
}

// sessions is the number of proxies that the policy note counts.
func (v *verifier) sessions() uint64 {
	n, _ := v.noteCount(schemas.NotePolicy, schemas.KeySessions)
	return n
}

// class is the number of kernel lines of a class, as the note about windows counts.
func (v *verifier) class(name string) uint64 {
	n, _ := v.noteCount(schemas.NoteWindows, name)
	return n
}

// classSum is the number of kernel lines of all classes.
func (v *verifier) classSum() (sum uint64) {
	for _, class := range schemas.LineClasses {
		sum += v.class(class)
	}
	return sum
}

func (v *verifier) faultHealth(rule, format string, a ...any) {
	v.add(rule, bundle.HealthName, 0, format, a...)
}

func (v *verifier) faultNote(format string, a ...any) { v.faultHealth(ruleHealthNote, format, a...) }
