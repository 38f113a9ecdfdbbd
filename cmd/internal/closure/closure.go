// Package closure says of an archive which signals it has, and how much of what a replay of the run
// needs. Both follow from the archive alone (schemas/PACKS.md, "Signals" and "Closure").
package closure

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// weights are those of the signals that a replay needs.
func weights() map[string]uint64 {
	out := map[string]uint64{}
	for _, s := range schemas.Signals {
		if s.Weight > 0 {
			out[s.Name] = s.Weight
		}
	}
	return out
}

// Score is how much of what a replay needs is in the archive. It follows from the archive alone.
func (r *Record) Score(all map[string]schemas.SignalDetail) schemas.ClosureScore {
	c := schemas.ClosureScore{Captured: []string{}, Missing: []string{}, Confidence: r.confidence(), Dependencies: r.uncontrolled(),
		Scoring: schemas.Scoring{Method: schemas.MethodWeighted, Weights: weights()}}
	for name := range c.Scoring.Weights {
		if all[name].Status == schemas.SignalCaptured {
			c.Captured = append(c.Captured, name)
		} else {
			c.Missing = append(c.Missing, name)
		}
	}
	slices.Sort(c.Captured)
	slices.Sort(c.Missing)
	c.Score = schemas.WeightedRatio(c.Scoring.Weights, c.Captured)
	return c
}

// confidence says how far the lists of a closure can be relied on: how well the run was observed.
func (r *Record) confidence() string {
	h := r.health
	switch {
	case h.KernelLayer == schemas.LayerAbsent || h.CgroupCorrelation == schemas.CorrelationFailed:
		return schemas.ConfidenceLow
	case h.KernelLayer != schemas.LayerComplete || h.RingbufDrops > 0 || h.CgroupCorrelation != schemas.CorrelationClean:
		return schemas.ConfidenceMedium
	}
	return schemas.ConfidenceHigh
}
