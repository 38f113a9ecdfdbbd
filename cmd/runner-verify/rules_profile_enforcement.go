package main

import (
	"math"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// The rules for the notes about what the command was refused and started without.

// enforcementNotes compares the notes about enforced rules with the kernel lines. Lines that
// the program of --drop left out are missing, in all no more than it left out.
func (v *verifier) enforcementNotes() {
	left, _ := v.noteCount(schemas.NoteDrop, schemas.KeyDropped)
	for i := range schemas.Enforcements {
		left -= v.enforcementNote(&schemas.Enforcements[i], &v.kernel.refused[i], left)
	}
}

// enforcementNote compares the note about rules of one kind with the kernel lines, and
// returns how many of the lines that may be missing are.
func (v *verifier) enforcementNote(e *schemas.Enforcement, k *refusals, left uint64) (missing uint64) {
	if !v.noted(e.Note) {
		if k.lines > 0 {
			v.faultNote("no note %s, but %d kernel lines say that %s refused something", e.Note.Code, k.lines, e.What)
		}
		if v.noted(e.IDsNote) {
			v.faultNote("note %s without %s", e.IDsNote.Code, e.Note.Code)
		}
		return 0
	}
	if !v.noted(schemas.NoteKernel) {
		v.faultNote("note %s without %s: nothing enforced %s", e.Note.Code, schemas.NoteKernel.Code, e.What)
	}
	blocked, _ := v.noteCount(e.Note, schemas.KeyBlocked)
	rules, _ := v.noteCount(e.Note, schemas.KeyRules)
	dropped, _ := v.noteCount(schemas.NoteDrops, schemas.KindOf(e.Event))
	want := k.lines + dropped
	v.ruleIDs(e, k, rules)
	switch {
	case want < dropped || blocked < want || blocked-want > left:
		v.faultNote("%s says blocked=%d, there are %d kernel lines and dropped=%d of them, and --drop left out %d lines at most", e.Note.Code, blocked, k.lines, dropped, left)
		return 0
	case uint64(k.rule) > rules:
		v.faultNote("%s says rules=%d, a kernel line names rule %d", e.Note.Code, rules, k.rule)
	}
	return blocked - want
}

// ruleIDs compares the note about the ids of rules with the numbers in the kernel lines. Archives of
// before do not have it.
func (v *verifier) ruleIDs(e *schemas.Enforcement, k *refusals, rules uint64) {
	ids := e.IDsIn(v.health.Notes)
	if len(ids) == 0 {
		return
	}
	if last := ids[len(ids)-1].Number; uint64(last) > rules {
		v.faultNote("%s names rule %d, %s says rules=%d", e.IDsNote.Code, last, e.Note.Code, rules)
	}
	for _, x := range ids {
		k.rules[x.Number/64] &^= 1 << (x.Number % 64)
	}
	for n := uint32(1); n <= schemas.MaxRuleNumber; n++ {
		if k.rules.has(n) {
			v.faultNote("a kernel line names rule %d, which %s does not have", n, e.IDsNote.Code)
			return
		}
	}
	if k.rule > schemas.MaxRuleNumber {
		v.faultNote("a kernel line names rule %d, which %s does not have", k.rule, e.IDsNote.Code)
	}
}

// toolPolicyNote compares the note about the policy files of the sessions with the policy layer.
// Archives of before do not have it, and no targets.
func (v *verifier) toolPolicyNote() {
	note, p := schemas.NoteToolPolicy, &v.policy
	n, there := v.noteCount(note, schemas.KeyPolicies)
	switch only := v.noteFields(note)[schemas.KeyPolicy]; {
	case !v.noted(note) && p.targets:
		v.faultNote("no note %s, but decisions have targets", note.Code)
	case !there:
	case n > v.mostPolicies():
		v.faultNote("%s says policies=%d, %s says sessions=%d", note.Code, n, schemas.NotePolicy.Code, v.sessions())
	case uint64(len(p.policies)) > n:
		v.faultNote("%s says policies=%d, the decisions have %d", note.Code, n, len(p.policies))
	case only != "" && len(p.policies) > 0 && !p.policies[only]:
		v.faultNote("%s says policy=%s, the decisions have another one", note.Code, only)
	}
	v.processAPINote()
}

// processAPINote compares the note about sessions of runner-proc with the policy layer.
func (v *verifier) processAPINote() {
	note := schemas.NoteProcessAPI
	switch n, there := v.noteCount(note, schemas.KeySessions); {
	case there && n > v.sessions():
		v.faultNote("%s says sessions=%d, %s says sessions=%d", note.Code, n, schemas.NotePolicy.Code, v.sessions())
	case !there && v.policy.processes:
		v.faultNote("no note %s, but decisions of %s", note.Code, schemas.LogSourceProc)
	case there && n == v.sessions() && v.policy.digest != "":
		v.faultNote("%s says that all sessions are of %s, but there are decisions of %s", note.Code, schemas.LogSourceProc, schemas.LogSource)
	}
}

// mostPolicies is how many policy files there can be: one for each session, or any number if one
// read its file again.
func (v *verifier) mostPolicies() uint64 {
	if v.report != nil && v.ambiguities().kinds[schemas.NoteReloaded] > 0 {
		return math.MaxUint64
	}
	return v.sessions()
}

// captureNotes checks that a run without a capture says why, and has no notes of one.
func (v *verifier) captureNotes() {
	if v.noted(schemas.NoteKernel) {
		return
	}
	why, only := schemas.ContractOnlyReasons(v.health.Platform), schemas.NoteContractOnly
	if texts := v.noteTexts(only); len(texts) == 0 || !slices.Contains(why, strings.TrimPrefix(texts[0], " ")) {
		v.faultNote("neither %s nor a note %s that says why: %s", schemas.NoteKernel.Code, only.Code, strings.Join(why, ", or "))
	}
	for _, text := range v.health.Notes {
		if code, _, _ := schemas.CutNote(text); strings.HasPrefix(code, "s2_") {
			v.faultNote("note %.100q without %s", code, schemas.NoteKernel.Code)
		}
	}
	if n, _ := v.noteCount(schemas.NoteDrop, schemas.KeyDropped); n > 0 {
		v.faultNote("%s says dropped=%d, but there was no capture", schemas.NoteDrop.Code, n)
	}
}

// confinementNote checks that what a mechanism of file rules takes from the command was
// taken exactly when it enforced them.
func (v *verifier) confinementNote() {
	var names []string
	for _, text := range v.noteTexts(schemas.NoteConfined) {
		names = append(names, strings.Split(strings.TrimPrefix(text, " "), "; ")...)
	}
	mechanism := v.noteFields(schemas.NoteFiles)[schemas.KeyMechanism]
	for _, c := range schemas.Confinements {
		if there := slices.Contains(names, c.Name); c.Mechanism != "" && there != (mechanism == c.Mechanism) {
			v.faultNote("%s, which does not go with the mechanism of %s", map[bool]string{true: schemas.NoteConfined.Code + " says " + c.Name,
				false: "no " + c.Name + " in " + schemas.NoteConfined.Code}[there], schemas.NoteFiles.Code)
		}
	}
}

// blindSpots checks that what rules and their mechanism cannot see is said only where there
// were such rules.
func (v *verifier) blindSpots() {
	if !v.noted(schemas.NoteBlind) {
		return
	}
	mechanism, texts := v.noteFields(schemas.NoteFiles)[schemas.KeyMechanism], schemas.BlindTexts()
	for text := range strings.SplitSeq(strings.TrimPrefix(v.noteTexts(schemas.NoteBlind)[0], " "), "; ") {
		name, _, _ := strings.Cut(text, " (")
		for _, b := range texts {
			if b.Under != nil && (b.Text == text || b.Text == name+" (N)") && (!v.noted(b.Under) || b.Mechanism != "" && b.Mechanism != mechanism) {
				v.faultNote("%s says %.100q, which does not go with the rules that were enforced", schemas.NoteBlind.Code, text)
			}
		}
	}
}
