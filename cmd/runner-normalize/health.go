package main

import (
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// stageHealth is what this stage counted.
func (n *normalizer) stageHealth(runID string) *schemas.StageHealth {
	h := &schemas.StageHealth{
		Schema: schemas.SchemaStageHealth, RunID: runID, Stage: schemas.StageNormalize,
		In: n.events, Out: n.store.lines, Filtered: n.filtered,
		Counters: map[string]uint64{
			schemas.CounterAdded:      n.added,
			schemas.CounterHookOnly:   n.hookOnly,
			schemas.CounterLexical:    n.lexical,
			schemas.CounterNullValues: n.nullValues,
			schemas.CounterOrphans:    n.tree.orphans,
			schemas.CounterProcesses:  n.tree.processes,
			schemas.CounterTasks:      uint64(n.tree.n),
		},
		Facts: map[string]string{},
		Notes: []string{},
	}
	for i, count := range n.byRule {
		if count > 0 {
			h.Filtered[n.noise.ID(i)] += count
		}
	}
	if n.opt.Windows {
		h.Counters[schemas.CounterProcessRecords] = n.written
	}
	if n.opt.CanonicalPIDs {
		h.Notes = append(h.Notes, schemas.NotePIDs.Format())
	}
	if n.left != nil {
		h.Notes = append(h.Notes, schemas.NoteNoise.Format(n.opt.Noise, n.left.written, n.left.omitted))
	}
	if p := n.procs; p != nil {
		h.Notes = append(h.Notes, schemas.NoteProcesses.Format(p.written, p.omitted, p.cut, p.unknown, p.argv, p.key))
	}
	if n.drop != nil {
		h.Out -= n.drop.n
		if n.drop.n > 0 {
			h.Filtered[schemas.FilterDrop] = n.drop.n
		}
		h.Notes = append(h.Notes, n.drop.note())
	}
	return h
}

// conserved checks that nothing vanished without a name. It cannot fail unless
// there is a bug here, and then there must be no seal.
func conserved(h *schemas.StageHealth) error {
	sum := h.Out
	for _, count := range h.Filtered {
		sum += count
	}
	if h.In+h.Counters[schemas.CounterAdded] != sum {
		return tool.Failf(tool.ExitIO, "internal error: %d events and %d second lines in, %d lines and filtered events out",
			h.In, h.Counters[schemas.CounterAdded], sum)
	}
	return nil
}
