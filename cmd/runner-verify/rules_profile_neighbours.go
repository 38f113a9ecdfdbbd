package main

import (
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// The rules for what kernel lines of this runner say of each other, and what the notes have to
// say of them.

// neighbours is what is kept of the kernel lines to compare each with the one before.
type neighbours struct {
	any       bool
	last      schemas.KernelEvent // without its texts
	nameless  int                 // the first program or file that was opened and has no name
	high      int                 // the first pid that the kernel does not give
	records   lineRecords
	alone     uint64 // lines of a pair whose other line is missing
	aloneLine int    // the first of them
	falls     int    // the first line whose pid is below that of the line before
}

// kernelNeighbours takes in a line. What --drop left out, and whether the numbers are
// canonical, is known only at the end.
func (v *verifier) kernelNeighbours(l *archive.Line, e *schemas.KernelEvent) {
	n := &v.kernel.near
	second := false
	if e.EventType < uint32(len(lineForms)) && lineForms[e.EventType].isSecond {
		if second = n.pairs(e); second {
			n.last.EventType = 0
		} else {
			n.lonely(l.Number)
		}
	} else if e.EventType == schemas.EventScript {
		if second = n.script(e); !second {
			n.lonely(l.Number)
		}
	}
	n.endPair(l.Number)
	if !second {
		n.records.add(e)
	}
	if e.PID >= schemas.MaxPID && n.high == 0 {
		n.high = l.Number
	}
	if n.any && e.PID < n.last.PID && n.falls == 0 {
		n.falls = l.Number
	}
	if done := e.EventType == schemas.EventExec || e.EventType == schemas.EventOpenat && e.Status == schemas.StatusSuccess; done && len(e.Value) == 0 && n.nameless == 0 {
		n.nameless = l.Number
	}
	n.any, n.last = true, schemas.KernelEvent{PID: e.PID, EventType: e.EventType, Has: e.Has, ReturnValue: e.ReturnValue, Status: e.Status, Doubt: e.Doubt}
}

// pairs reports whether a line is the second one of the operation of the line before.
func (n *neighbours) pairs(e *schemas.KernelEvent) bool {
	a := &n.last
	return n.any && a.EventType < uint32(len(lineForms)) && lineForms[a.EventType].second == e.EventType && a.PID == e.PID &&
		a.Has&schemas.KernelHasReturn == e.Has&schemas.KernelHasReturn && a.ReturnValue == e.ReturnValue && a.Status == e.Status && a.Doubt == e.Doubt
}

// script reports whether the line before is that of the program that a script started.
func (n *neighbours) script(e *schemas.KernelEvent) bool {
	return n.any && n.last.EventType == schemas.EventExec && n.last.PID == e.PID && n.last.ReturnValue == e.ReturnValue && n.last.Doubt == e.Doubt
}

// endPair notes that the line before was to be followed by another one.
func (n *neighbours) endPair(line int) {
	if n.any && n.last.EventType < uint32(len(lineForms)) && lineForms[n.last.EventType].second != 0 {
		n.lonely(line)
	}
}

func (n *neighbours) lonely(line int) {
	if n.alone++; n.alone == 1 {
		n.aloneLine = line
	}
}

// kernelOrder checks what the lines say of each other.
func (v *verifier) kernelOrder() {
	n := &v.kernel.near
	n.endPair(int(v.kernelLines()))
	n.any = false
	if left, _ := v.noteCount(schemas.NoteDrop, schemas.KeyDropped); n.alone > left {
		v.add(ruleKernelOrder, bundle.KernelName, n.aloneLine, "%d lines of operations with two lines lack the other one, or it has another outcome; --drop left out %d lines", n.alone, left)
	}
	if n.high > 0 && !v.noted(schemas.NotePIDs) {
		v.add(ruleKernelOrder, bundle.KernelName, n.high, "the number of the process is %d or above, which no kernel gives, and there is no note %s", schemas.MaxPID, schemas.NotePIDs.Code)
	}
	if n.nameless > 0 && !v.noted(schemas.NoteQuality) {
		v.add(ruleKernelOrder, bundle.KernelName, n.nameless, "no value of what was executed or opened, but no note %s says that names could not be read", schemas.NoteQuality.Code)
	}
	if n.falls > 0 && v.noted(schemas.NotePIDs) {
		v.add(ruleKernelOrder, bundle.KernelName, n.falls, "the number of the process is below that of the line before, note %s says that they are in order", schemas.NotePIDs.Code)
	}
}

// lineRecords counts the calls that the lines tell: those with two lines once.
type lineRecords struct {
	doubts, unproven, undecoded, programs uint64
}

func (r *lineRecords) add(e *schemas.KernelEvent) {
	if e.Doubt != "" {
		r.doubts++
	}
	if e.Status == schemas.StatusUnproven {
		r.unproven++
	}
	switch e.EventType {
	case schemas.EventIOUringOther:
		if e.Status != schemas.StatusError { // of what the kernel refused, nothing is missing
			r.undecoded++
		}
	case schemas.EventExec:
		r.programs++
	}
}

// kernelCounted checks that the notes count what the lines show: doubts, calls without a proof
// and operations that were not decoded. Of calls that are no line the notes count more.
func (v *verifier) kernelCounted() {
	r := &v.kernel.near.records
	for _, c := range []struct {
		rule  string
		note  *schemas.Note
		key   string
		lines uint64
		what  string
	}{
		{ruleHealthNote, schemas.NoteQuality, schemas.CounterChanged, r.doubts, "are in doubt"},
		{ruleHealthNote, schemas.NoteQuality, schemas.CounterUnproven, r.unproven, "are unproven"},
		{ruleHealthLoss, schemas.NoteLoss, schemas.CounterIOUringUnmapped, r.undecoded, "were not decoded"},
	} {
		if n, _ := v.noteCount(c.note, c.key); n < c.lines {
			v.faultHealth(c.rule, "%d calls of the kernel layer %s, note %s says %s=%d", c.lines, c.what, c.note.Code, c.key, n)
		}
	}
	dropped, _ := v.noteCount(schemas.NoteDrop, schemas.KeyDropped)
	all, fits := schemas.Total(v.kernelLines(), dropped)
	if n, _ := v.noteCount(schemas.NoteQuality, schemas.CounterLexical); fits && n > all {
		v.faultNote("%s says %s=%d, there are %d kernel lines, and --drop left out %d", schemas.NoteQuality.Code, schemas.CounterLexical, n, v.kernelLines(), dropped)
	}
	blocked, _ := v.noteCount(schemas.NoteFiles, schemas.KeyBlocked)
	if n, _ := v.noteCount(schemas.NoteQuality, schemas.CounterFileUnresolved); n > blocked {
		v.faultNote("%s says %s=%d, note %s blocked=%d", schemas.NoteQuality.Code, schemas.CounterFileUnresolved, n, schemas.NoteFiles.Code, blocked)
	}
}
