package main

import (
	"github.com/runner-evidence/runner/schemas"
)

// The rules for what this runner says about losses and escapes: each number that stands in
// several places is the same in all of them.

// captureState checks that a capture whose layer is absent has lost track of the command,
// and says so in every place.
func (v *verifier) captureState() {
	h := v.health
	escapes, escaped := v.noteCount(schemas.NoteEscape, schemas.CounterEscapes)
	cause, caused := v.noteCount(schemas.NoteLoss, schemas.CounterEscapes)
	dropped, _ := v.noteCount(schemas.NoteDrops, schemas.OpMove)
	missed, _ := v.noteCount(schemas.NoteMissed, schemas.OpMove)
	moves, ok := schemas.Total(dropped, missed)
	switch absent := h.KernelLayer == schemas.LayerAbsent; {
	case escaped != caused || escapes != cause:
		v.faultHealth(ruleHealthCgroup, "note %s says escapes=%d, note %s %d", schemas.NoteEscape.Code, escapes, schemas.NoteLoss.Code, cause)
	case !ok || moves > escapes:
		v.faultHealth(ruleHealthCgroup, "escapes is %d, but dropped=%d and missed=%d moves cannot be ruled out", escapes, dropped, missed)
	case escaped && !absent:
		v.faultHealth(ruleHealthCgroup, "kernel_layer is %s, but note %s says that tasks left the cgroup", h.KernelLayer, schemas.NoteEscape.Code)
	case escaped != (h.CgroupCorrelation == schemas.CorrelationFailed):
		v.faultHealth(ruleHealthCgroup, "cgroup_correlation is %s, which does not go with escapes=%d", h.CgroupCorrelation, escapes)
	case absent && v.noted(schemas.NoteKernel) && !escaped:
		v.faultHealth(ruleHealthCgroup, "kernel_layer is absent, but there is a note %s and none %s", schemas.NoteKernel.Code, schemas.NoteEscape.Code)
	}
}

// lossCause checks that a layer is partial exactly when a cause is named, and that the drops
// by operation are those that were counted.
func (v *verifier) lossCause() {
	h := v.health
	if !v.noted(schemas.NoteLoss) && h.KernelLayer == schemas.LayerPartial {
		v.faultHealth(ruleHealthLoss, "kernel_layer is %s without a cause", h.KernelLayer)
	}
	dropped, _ := v.noteCount(schemas.NoteLoss, schemas.CounterDropped)
	// Earlier releases did not count drops by operation.
	if sum, ok := v.noteSum(schemas.NoteDrops); v.noted(schemas.NoteDrops) && v.noted(schemas.NoteKernel) && (!ok || sum != dropped) {
		v.faultHealth(ruleHealthLoss, "the counts of note %s do not add up to the dropped=%d of note %s", schemas.NoteDrops.Code, dropped, schemas.NoteLoss.Code)
	}
}

// missedNote compares the missed events by probe with the causes that they are part of.
func (v *verifier) missedNote() {
	if !v.noted(schemas.NoteMissed) {
		return
	}
	skipped, _ := v.noteCount(schemas.NoteLoss, schemas.CounterRecursionMisses)
	lost, _ := v.noteCount(schemas.NoteLoss, schemas.CauseRedundantLost)
	all, fits := schemas.Total(skipped, lost)
	if sum, ok := v.noteSum(schemas.NoteMissed); !ok || !fits || sum != all {
		v.faultHealth(ruleHealthLoss, "the counts of note %s do not add up to the events that note %s says were missed", schemas.NoteMissed.Code, schemas.NoteLoss.Code)
	}
}
