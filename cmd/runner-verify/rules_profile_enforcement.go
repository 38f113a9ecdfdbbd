package main

import (
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// The rules for the notes about what the command was refused and started without.

// enforcementNotes compares the notes about enforced rules with the kernel lines.
func (v *verifier) enforcementNotes() {
	for i := range schemas.Enforcements {
		v.enforcementNote(&schemas.Enforcements[i], &v.kernel.refused[i])
	}
	if !v.noted(schemas.NoteFiles) {
		return
	}
	fields := v.noteFields(schemas.NoteFiles)
	mechanism, evidence := fields[schemas.KeyMechanism], fields[schemas.KeyEvidence]
	switch {
	case !slices.Contains(schemas.FileMechanisms[:], mechanism):
		v.faultNote("%s says mechanism=%.100s, expected one of %s", schemas.NoteFiles.Code, mechanism, strings.Join(schemas.FileMechanisms[:], ", "))
	case evidence != schemas.EvidenceOf(mechanism):
		v.faultNote("%s says evidence=%.100s, which is not that of %s", schemas.NoteFiles.Code, evidence, mechanism)
	}
}

// enforcementNote compares the note about rules of one kind with the kernel lines.
func (v *verifier) enforcementNote(e *schemas.Enforcement, k *refusals) {
	if !v.noted(e.Note) {
		if k.lines > 0 {
			v.faultNote("no note %s, but %d kernel lines say that %s refused something", e.Note.Code, k.lines, e.What)
		}
		return
	}
	if !v.noted(schemas.NoteKernel) {
		v.faultNote("note %s without %s: nothing enforced %s", e.Note.Code, schemas.NoteKernel.Code, e.What)
	}
	blocked, _ := v.noteCount(e.Note, schemas.KeyBlocked)
	rules, _ := v.noteCount(e.Note, schemas.KeyRules)
	dropped, _ := v.noteCount(schemas.NoteDrops, schemas.KindOf(e.Event))
	// normalize_drop may have taken lines out.
	exact := !v.noted(schemas.NoteDrop)
	switch want := k.lines + dropped; {
	case blocked < want, exact && blocked != want:
		v.faultNote("%s says blocked=%d, the kernel lines and the drops add up to %d", e.Note.Code, blocked, want)
	case uint64(k.rule) > rules:
		v.faultNote("%s says rules=%d, a kernel line names rule %d", e.Note.Code, rules, k.rule)
	}
}

// captureNotes checks that a run without a capture has no notes of one.
func (v *verifier) captureNotes() {
	if v.noted(schemas.NoteKernel) {
		return
	}
	for _, text := range v.health.Notes {
		if code, _, _ := schemas.CutNote(text); strings.HasPrefix(code, "s2_") {
			v.faultNote("note %.100q without %s", code, schemas.NoteKernel.Code)
		}
	}
}

// confinementNote checks what the command was started without: known names in order, and
// those by which a mechanism enforces file rules exactly when it did.
func (v *verifier) confinementNote() {
	var names []string
	for _, text := range v.noteTexts(schemas.NoteConfined) {
		names = append(names, strings.Split(strings.TrimPrefix(text, " "), "; ")...)
	}
	if err := schemas.CheckConfined(names); err != nil {
		v.faultNote("%s: %v", schemas.NoteConfined.Code, err)
		return
	}
	mechanism := v.noteFields(schemas.NoteFiles)[schemas.KeyMechanism]
	for _, c := range schemas.Confinements {
		if there := slices.Contains(names, c.Name); c.Mechanism != "" && there != (mechanism == c.Mechanism) {
			v.faultNote("%s, which does not go with the mechanism of %s", map[bool]string{true: schemas.NoteConfined.Code + " says " + c.Name,
				false: "no " + c.Name + " in " + schemas.NoteConfined.Code}[there], schemas.NoteFiles.Code)
		}
	}
}
