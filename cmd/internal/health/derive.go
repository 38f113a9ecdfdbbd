package health

import (
	"github.com/runner-evidence/runner/schemas"
)

// Derive makes the observation health of a run that has only the kernel layer. The network
// fields are those that network gives for a kernel_layer.
func Derive(runID string, c *Capture, normalize *schemas.StageHealth, lines uint64, network func(layer string) (coverage, scope string)) schemas.Health {
	h := schemas.Health{Schema: schemas.SchemaHealth, RunID: runID, Platform: c.Fact(schemas.FactPlatform),
		KernelLayer: schemas.LayerAbsent, CgroupCorrelation: schemas.CorrelationPartial,
		PolicyLayer: schemas.LayerAbsent, SDKLayer: schemas.LayerAbsent}
	var causes []any
	if c.Attached() {
		causes = c.causes()
		switch {
		case c.n(schemas.CounterEscapes) > 0:
			h.CgroupCorrelation = schemas.CorrelationFailed
		case len(causes) > 0:
			h.KernelLayer, h.CgroupCorrelation = schemas.LayerPartial, schemas.CorrelationClean
			h.RingbufDrops = c.n(schemas.CounterDropped)
		default:
			h.KernelLayer, h.CgroupCorrelation = schemas.LayerComplete, schemas.CorrelationClean
		}
	}
	h.NetworkCoverage, h.EndpointScope = network(h.KernelLayer)
	h.Notes = append(notes(&h, c, normalize, causes, lines), c.enforcement()...)
	h.Notes = append(h.Notes, c.Health.Notes...)
	h.Notes = append(h.Notes, normalize.Notes...)
	return h
}

func notes(h *schemas.Health, c *Capture, normalize *schemas.StageHealth, causes []any, lines uint64) []string {
	if !c.Attached() {
		why := schemas.ContractOnlyNotRequested
		if c.Fact(schemas.FactKernelCapture) == schemas.CaptureUnsupported {
			why = schemas.ContractOnlyUnsupported + h.Platform
		}
		return append([]string{schemas.NoteContractOnly.Format(why)}, c.confinement()...)
	}
	list := []string{schemas.NoteKernel.Format(lines, h.RingbufDrops, h.NetworkCoverage, h.EndpointScope)}
	if len(causes) > 0 {
		list = append(list, schemas.NoteLoss.Format(causes...))
	}
	if drops := c.parts(schemas.CounterDroppedByOp); len(drops) > 0 {
		list = append(list, schemas.NoteDrops.Format(drops...))
	}
	if missed := c.parts(schemas.CounterMissed); len(missed) > 0 {
		list = append(list, schemas.NoteMissed.Format(missed...))
	}
	if n := c.n(schemas.CounterEscapes); n > 0 {
		list = append(list, schemas.NoteEscape.Format(n))
	}
	if q := c.quality(normalize); len(q) > 0 {
		list = append(list, schemas.NoteQuality.Format(q...))
	}
	if n := c.n(schemas.CounterSurvivorsKilled); n > 0 {
		list = append(list, schemas.NoteSurvivors.Format(n))
	}
	if c.Fact(schemas.FactEnd) == schemas.EndSignal {
		list = append(list, schemas.NoteEnd.Format())
	}
	return append(append(list, schemas.NoteBlind.Format(c.blind()...)), c.confinement()...)
}

// enforcement returns the notes about rules that were enforced.
func (c *Capture) enforcement() (notes []string) {
	for i := range schemas.Enforcements {
		if e := &schemas.Enforcements[i]; c.Enforced(e) {
			notes = append(notes, e.Note.Format(c.enforcementFields(e)...))
			if ids, _ := schemas.ParseRuleIDs(c.Fact(e.IDs)); len(ids) > 0 { // check has read it before
				notes = append(notes, e.IDsNote.Format(ids.Texts()...))
			}
		}
	}
	return notes
}

// enforcementFields are the values of the note about rules of one kind.
func (c *Capture) enforcementFields(e *schemas.Enforcement) (values []any) {
	for _, f := range e.Note.Fields {
		switch f.Key {
		case schemas.KeyRules:
			values = append(values, c.n(e.Rules))
		case schemas.KeyBlocked:
			values = append(values, c.n(e.Blocked))
		case schemas.KeyMechanism:
			values = append(values, c.Fact(schemas.FactFileMechanism))
		case schemas.KeyEvidence:
			values = append(values, schemas.EvidenceOf(c.Fact(schemas.FactFileMechanism)))
		case schemas.KeyPolicy:
			values = append(values, c.Fact(e.Policy))
		}
	}
	return values
}
