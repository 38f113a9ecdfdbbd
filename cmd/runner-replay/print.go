package main

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// print writes the result to standard output.
func (r *Result) print(env *tool.Env, o Options) error {
	var b bytes.Buffer
	if o.JSON {
		line, err := schemas.Marshal(r)
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	} else {
		r.text(&b)
	}
	if _, err := env.Stdout.Write(b.Bytes()); err != nil {
		return tool.CannotWrite("standard output", err)
	}
	return nil
}

// text is the result for people.
func (r *Result) text(w io.Writer) {
	switch r.Verdict {
	case verdictOpen:
		fmt.Fprintln(w, "not closed: what went into the run is not all in the archive")
	case verdictDrifted:
		fmt.Fprintf(w, "drifted: %d of %d replays were equal\n", r.EqualRuns, r.Runs)
	default:
		fmt.Fprintf(w, "equal: %d of %d replays\n", r.EqualRuns, r.Runs)
	}
	for _, m := range r.Missing {
		fmt.Fprintf(w, "missing      %s\n", m)
	}
	for _, l := range r.Layers {
		if l.Equal {
			fmt.Fprintf(w, "equal        %s\n", l.Name)
			continue
		}
		place := ""
		if l.Line > 0 {
			place = fmt.Sprintf(" from line %d", l.Line)
		}
		fmt.Fprintf(w, "differs      %s%s\n  recorded   %s\n  replayed   %s\n", l.Name, place, l.Then, l.Now)
	}
	if r.Verdict == verdictEqual {
		return
	}
	for _, u := range r.Uncovered {
		fmt.Fprintf(w, "uncontrolled %s\n", u)
	}
	for _, p := range r.Programs {
		for _, why := range p.Why {
			fmt.Fprintf(w, "uncontrolled %s: %s\n", schemas.Text(p.Program), why)
		}
	}
}

// metrics are the numbers of a result.
func metrics(then *recorded, r *Result, took time.Duration, back *reverts) *Metrics {
	m := &Metrics{SchemaVersion: schemas.VersionReplayMetrics, RunID: r.RunID, Runs: r.Runs, Fidelity: float64(r.EqualRuns) / float64(r.Runs), Boundaries: boundaries(then),
		ReplayMS: milliseconds(took, r.Runs), Reverts: back.n}
	if back.n > 0 {
		mean := milliseconds(back.took, back.n)
		m.RevertMS = &mean
	}
	covered := 0
	for _, b := range m.Boundaries {
		if b.Covered {
			covered++
		}
	}
	m.Coverage = float64(covered) / float64(len(m.Boundaries))
	return m
}

// milliseconds is a mean.
func milliseconds(took time.Duration, n uint) float64 {
	return float64(took.Microseconds()) / 1000 / float64(n)
}

// boundaries says which boundaries of a run are covered: a layer must be there, and say that it is whole.
func boundaries(r *recorded) []Bound {
	of := func(name string, there, whole bool) Bound {
		switch {
		case !there:
			return Bound{Name: name, Why: "not recorded"}
		case !whole:
			return Bound{Name: name, Why: "the record is not whole"}
		}
		return Bound{Name: name, Covered: true}
	}
	return []Bound{
		of("environment", r.env != nil, !r.redacted()),
		of("files", r.box != nil, r.box != nil && r.box.Unread == 0 && r.box.BaseChanged == 0),
		of("network", r.net != nil, r.net != nil && r.net.NamesLost == 0 && !r.tunneled()),
		of("clock", r.clock != nil, r.clock != nil && r.clock.Bad == 0 && r.clock.Lost == 0),
		of("kernel", r.kernel(), r.health != nil && r.health.KernelLayer == schemas.LayerComplete),
	}
}

// writeMetrics writes them as JSON, and as a table for people next to it.
func writeMetrics(file string, m *Metrics) error {
	if err := tool.WriteFile(file, func(w io.Writer) error {
		b, err := schemas.Marshal(m)
		if err == nil {
			_, err = w.Write(append(b, '\n'))
		}
		return err
	}); err != nil {
		return err
	}
	return tool.WriteFile(file+".md", func(w io.Writer) error {
		revert := "nothing to take back"
		if m.RevertMS != nil {
			revert = fmt.Sprintf("%.1f of %d reverts", *m.RevertMS, m.Reverts)
		}
		_, err := fmt.Fprintf(w, "# Replays of %s\n\n| measure | value |\n|---|---|\n| replay_fidelity | %.3f of %d replays |\n| boundary_coverage | %.3f |\n| mean_revert_time_ms | %s |\n| mean_replay_time_ms | %.1f |\n\n| boundary | covered |\n|---|---|\n", m.RunID, m.Fidelity, m.Runs, m.Coverage, revert, m.ReplayMS)
		for _, b := range m.Boundaries {
			said := "yes"
			if !b.Covered {
				said = "no: " + b.Why
			}
			if err == nil {
				_, err = fmt.Fprintf(w, "| %s | %s |\n", b.Name, said)
			}
		}
		return err
	})
}
