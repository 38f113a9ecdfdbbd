package health

import (
	"fmt"
	"maps"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/noise"
	"github.com/runner-evidence/runner/schemas"
)

// Sources are the stages that write a kernel.normalized stream, in order, as their healths
// name them. Without a kernel capture, runner-exec takes the place of runner-capture.
var Sources = [...][]string{{schemas.StageCapture, schemas.StageExec}, {schemas.StageNormalize}}

// Flow checks the healths of these stages, and that nothing was lost between them, and before
// the kernel lines of the stream, without being counted.
func Flow(c *Capture, normalize *schemas.StageHealth, lines uint64) error {
	if err := c.Check(); err != nil {
		return fmt.Errorf("stage health: %w", err)
	}
	if err := knownFilters(normalize); err != nil {
		return err
	}
	added := normalize.Counters[schemas.CounterAdded]
	in, inOK := schemas.Total(normalize.In, added)
	filtered, ok := schemas.TotalOf(maps.Values(normalize.Filtered))
	out, outOK := schemas.Total(normalize.Out, filtered)
	switch {
	case normalize.In != c.Health.Out:
		return fmt.Errorf("%s wrote %d events, %s read %d", c.Health.Stage, c.Health.Out, normalize.Stage, normalize.In)
	case !inOK || !ok || !outOK || in != out:
		return fmt.Errorf("%s read %d and added %d, but wrote %d and filtered %d", normalize.Stage, normalize.In, added, normalize.Out, filtered)
	case normalize.Out != lines:
		return fmt.Errorf("%s wrote %d kernel lines, the stream has %d", normalize.Stage, normalize.Out, lines)
	}
	return checkNotes(normalize)
}

// knownFilters checks that every filter is a rule of this release.
func knownFilters(normalize *schemas.StageHealth) error {
	ids, err := noise.IDs()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, id := range ids {
		known[id] = true
	}
	for _, f := range schemas.Filters {
		known[f.ID] = true
	}
	for _, id := range slices.Sorted(maps.Keys(normalize.Filtered)) {
		if !known[id] {
			return fmt.Errorf("%s filtered by %.100q, which is no rule", normalize.Stage, id)
		}
	}
	return nil
}

// checkNotes checks that a stage before runner-correlate says only notes that it has, and that
// the note about --drop says what was filtered.
func checkNotes(normalize *schemas.StageHealth) error {
	var dropped uint64
	for _, text := range normalize.Notes {
		code, _, _ := schemas.CutNote(text)
		note, known := schemas.LookupNote(code)
		if !known || note.By != normalize.Stage {
			return fmt.Errorf("%s says %.200q, which is no note of it", normalize.Stage, text)
		}
		v, err := note.Parse(text)
		if err != nil {
			return fmt.Errorf("%s: %w", normalize.Stage, err)
		}
		if note == schemas.NoteDrop {
			dropped, _ = v.Count(schemas.KeyDropped)
		}
	}
	if n := normalize.Filtered[schemas.FilterDrop]; n != dropped {
		return fmt.Errorf("%s filtered %d lines by %s, its note says %d", normalize.Stage, n, schemas.FilterDrop, dropped)
	}
	return nil
}
