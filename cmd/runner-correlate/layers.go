package main

import (
	"cmp"
	"slices"

	"github.com/runner-evidence/runner/schemas"
)

// addLayers adds to the health what is known of the layers that are made from logs.
func (j *joiner) addLayers(h *schemas.Health) {
	var notes []string
	for _, l := range j.logs {
		if !l.present() {
			continue
		}
		if l.Field != nil {
			*l.Field(h) = l.Present
		}
		notes = append(notes, l.Note.Format(l.note()...))
		if l.Name == schemas.LayerPolicy {
			notes = append(notes, j.policy.filesNotes()...)
		}
	}
	if p := j.policy; p != nil && len(p.sessions) > 0 && j.hasTimes() {
		a := j.attribution
		counts := []any{a.inCall, a.setup, a.idle, a.agent}
		if a.inRequest > 0 {
			counts = append(counts, a.inRequest)
		}
		notes = append(notes, schemas.NoteWindows.Format(counts...))
	}
	if j.timing != nil {
		notes = append(notes, schemas.NoteTimes.Format(j.timedLines()))
	}
	notes = append(notes, j.records.notes()...)
	slices.SortStableFunc(notes, func(a, b string) int { return cmp.Compare(noteRank(a), noteRank(b)) })
	// Other stages' notes come last.
	last := len(h.Notes) - len(j.stages[0].Notes) - len(j.stages[1].Notes)
	h.Notes = slices.Insert(h.Notes, last, notes...)
}

// noteRank is the place of a note among those of the health.
func noteRank(note string) int {
	code, _, _ := schemas.CutNote(note)
	return schemas.NoteRank(code)
}

// writeLayers writes the lines of the layers that are made from logs, each once: those before a layer of the
// table, or all.
func (j *joiner) writeLayers(before string) error {
	for _, l := range schemas.Layers {
		switch {
		case l.Name == before:
			return nil
		case l.Name == schemas.LayerExchanges && !j.records.exchanged:
			j.records.exchanged = true
			if err := j.writeWrapped(l.Name); err != nil {
				return err
			}
			continue
		case j.wrote == len(j.logs) || j.logs[j.wrote].Name != l.Name:
			continue
		}
		if err := j.logs[j.wrote].each(j.out.WriteRaw); err != nil {
			return err
		}
		j.wrote++
	}
	return nil
}

// writeReport writes the report in parts: its arrays may be long.
func (j *joiner) writeReport(r *schemas.Report) error {
	if j.policy != nil {
		for _, d := range j.policy.decisions {
			if err := j.out.Write(schemas.BindingEntry{Schema: schemas.SchemaBinding, RunID: r.RunID, Binding: j.bind(d)}); err != nil {
				return err
			}
		}
	}
	for _, code := range slices.Concat(r.Ambiguities, r.Notes) {
		if err := j.out.Write(schemas.AmbiguityEntry{Schema: schemas.SchemaAmbiguity, RunID: r.RunID, Code: code}); err != nil {
			return err
		}
	}
	r.Bindings, r.Ambiguities, r.Notes = []schemas.Binding{}, []string{}, nil
	return j.out.Write(r)
}

// addCounters adds the counters of the layers whose logs were read.
func (j *joiner) addCounters(counters map[string]uint64) {
	for _, l := range j.logs {
		counters[l.Counter] = l.count()
	}
	if j.filtered.lines > 0 {
		counters[schemas.CounterFiltered] = j.filtered.lines
	}
	if j.processes.written > 0 {
		counters[schemas.CounterProcessLines] = j.processes.written
	}
	for i := range schemas.Layers {
		if l := &schemas.Layers[i]; j.records.counts[l.Name] > 0 {
			counters[l.Counter] = j.records.counts[l.Name]
		}
	}
	if j.timing != nil {
		counters[schemas.CounterTimes] = j.timing.n
	}
}

// sealStatus is the worst status of the inputs. It is partial as well when a log that was
// read has a fault that may hide more than later lines of its layer.
func (j *joiner) sealStatus() schemas.Status {
	status := j.in.Trailer().Status
	if j.records.dir != "" {
		status = schemas.Worst(status, j.records.status)
	}
	c := codes{}
	for _, l := range j.logs {
		status = schemas.Worst(status, l.end().facts.seal)
		if l.Log.Missing != "" {
			c.addLog(l.Layer, l.end(), false)
		}
	}
	if len(c) > 0 {
		return schemas.StatusPartial
	}
	return status
}
