package main

import (
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// noteSet is the notes of one kind.
type noteSet struct {
	texts  []string // without the code
	values map[string]string
}

// notes are the notes of the health by their code, taken apart once. In an archive of this
// runner a note has the values that its one parser reads. Other implementations write the
// notes of the v0 contract with more words: of theirs it has all KEY=VALUE words.
func (v *verifier) notes() map[string]*noteSet {
	if v.noteSets != nil {
		return v.noteSets
	}
	v.noteSets = map[string]*noteSet{}
	for _, note := range v.health.Notes {
		code, text, _ := schemas.CutNote(note)
		s := v.noteSets[code]
		if s == nil {
			s = &noteSet{values: schemas.NoteWords(text)}
			if n, known := schemas.LookupNote(code); known && v.writtenByRunner() {
				values, _ := n.Parse(note) // noteForms reports the error
				s.values = values.Map()
			}
			v.noteSets[code] = s
		}
		s.texts = append(s.texts, text)
	}
	return v.noteSets
}

// noteTexts are the texts of the notes of one kind, without the code.
func (v *verifier) noteTexts(n *schemas.Note) []string {
	if s := v.notes()[n.Code]; s != nil {
		return s.texts
	}
	return nil
}

// noted reports whether there is a note of one kind.
func (v *verifier) noted(n *schemas.Note) bool { return v.notes()[n.Code] != nil }

// noteFields are the values of the first note of one kind that have a key. Empty without the
// note.
func (v *verifier) noteFields(n *schemas.Note) map[string]string {
	if s := v.notes()[n.Code]; s != nil {
		return s.values
	}
	return nil
}

// noteCount is a count in the first note of one kind; false without it.
func (v *verifier) noteCount(n *schemas.Note, key string) (uint64, bool) {
	return schemas.NoteValues{{Key: key, Value: v.noteFields(n)[key]}}.Count(key)
}

// noteSum is the sum of the counts of a note; false if it has no room, or one is no count.
// Without the note it is 0.
func (v *verifier) noteSum(n *schemas.Note) (uint64, bool) {
	var values schemas.NoteValues
	for key, value := range v.noteFields(n) {
		values = append(values, schemas.NoteValue{Key: key, Value: value})
	}
	return values.Sum()
}

// sessions is the number of proxies that the policy note counts.
func (v *verifier) sessions() uint64 {
	n, _ := v.noteCount(schemas.NotePolicy, schemas.KeySessions)
	return n
}

// unknownServers is the number of codes that say that a session's tree is not known.
func (v *verifier) unknownServers() uint64 {
	kinds := v.ambiguities().kinds
	return uint64(kinds[schemas.AmbiguityServerUnknown] + kinds[schemas.NoteElsewhere])
}

// class is the number of kernel lines of a class, as the note about windows counts.
func (v *verifier) class(name string) uint64 {
	n, _ := v.noteCount(schemas.NoteWindows, name)
	return n
}

// classSum is the number of kernel lines of all classes; false if it has no room.
func (v *verifier) classSum() (sum uint64, ok bool) { return v.noteSum(schemas.NoteWindows) }

func (v *verifier) faultHealth(rule, format string, a ...any) {
	v.add(rule, bundle.HealthName, 0, format, a...)
}

func (v *verifier) faultNote(format string, a ...any) { v.faultHealth(ruleHealthNote, format, a...) }
