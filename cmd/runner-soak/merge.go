package main

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// maxReport bounds a report that is read again: that of the most iterations with some rules each.
const maxReport = 256 << 20

// merge joins the reports, or the surfaces, of all shards.
func merge(env *tool.Env, opt Options) error {
	var parts []*whole
	for _, name := range opt.Merge {
		w, err := readWhole(name)
		if err != nil {
			return err
		}
		parts = append(parts, w)
	}
	if parts[0].bare && opt.Surface != "" {
		return tool.Usagef("--surface needs the surfaces of the shards, and %s is a report", schemas.Text(opt.Merge[0]))
	}
	w, err := join(parts, opt.Merge)
	if err != nil {
		return tool.Fail(tool.ExitInput, err)
	}
	w.generated = opt.GeneratedAt
	code, err := w.write(env, &opt, nil)
	if err == nil && code != tool.ExitOK {
		err = tool.Status(code)
	}
	return err
}

// readWhole reads a report or a surface that is consistent in itself.
func readWhole(name string) (*whole, error) {
	b, err := tool.ReadFile(name, maxReport)
	if err != nil {
		return nil, err
	}
	w, err := parseWhole(b)
	if err != nil {
		return nil, tool.Failf(tool.ExitInput, "%s: %w", schemas.Text(name), err)
	}
	return w, nil
}

func parseWhole(b []byte) (*whole, error) {
	var head struct {
		Version string `json:"schema_version"`
	}
	if err := schemas.UnmarshalOpen(b, &head); err != nil {
		return nil, err
	}
	w := new(whole)
	switch head.Version {
	case schemas.VersionSoakReport:
		r := new(Report)
		if err := schemas.Unmarshal(b, r); err != nil {
			return nil, err
		}
		w.bare, w.plan, w.faults = true, r.Plan, []FaultResult{{Name: noFault, Wrapper: []string{}, Results: r.Results, Runs: r.Runs}}
	case schemas.VersionSoakSurface:
		r := new(Surface)
		if err := schemas.Unmarshal(b, r); err != nil {
			return nil, err
		}
		w.plan, w.faults = r.Plan, r.Faults
	default:
		return nil, fmt.Errorf("schema_version is %.100q, expected %s or %s", head.Version, schemas.VersionSoakReport, schemas.VersionSoakSurface)
	}
	return w, w.check()
}

// check refuses what no runner-soak writes: the numbers must follow from the runs.
func (w *whole) check() error {
	p := &w.plan
	if p.Iterations < 1 || p.Iterations > maxIterations || p.Seed > maxSeed || len(w.faults) == 0 || len(w.faults) > maxFaults || len(p.Packs) == 0 {
		return errors.New("iterations, seed, packs or faults are not those of a soak")
	}
	if s := p.Shard; s != nil && (s.Count < 1 || s.Count > p.Iterations || s.Index < 1 || s.Index > s.Count) {
		return fmt.Errorf("shard %d of %d is none of %d iterations", s.Index, s.Count, p.Iterations)
	}
	for i := range w.faults {
		f := &w.faults[i]
		last := 0
		for _, r := range f.Runs {
			if r.Index <= last || r.Index > p.Iterations || !p.Shard.has(r.Index) {
				return fmt.Errorf("fault %.64s: run %d is not in its place", f.Name, r.Index)
			}
			if !slices.Contains([]string{statusPass, statusFail, statusInfra}, r.Status) || (r.Status == statusInfra) != (r.Kind != "") || r.DurationMS < 0 || r.DurationMS > math.MaxInt32*1000 {
				return fmt.Errorf("fault %.64s: run %d has no status, or another kind of it", f.Name, r.Index)
			}
			last = r.Index
		}
		kept, rest := counted(slices.Clone(f.Runs), p.Policy)
		if len(rest) > 0 {
			return fmt.Errorf("fault %.64s: runs after the one at which the decision policy stops", f.Name)
		}
		same, err := equal(results(kept, p), f.Results)
		if err != nil || !same {
			return fmt.Errorf("fault %.64s: its results are not those of its runs", f.Name)
		}
	}
	return nil
}

// equal compares two values as they are written.
func equal(a, b any) (bool, error) {
	x, errA := schemas.Marshal(a)
	y, errB := schemas.Marshal(b)
	return string(x) == string(y), errors.Join(errA, errB)
}

// join makes one soak of all its shards, given in any order.
func join(parts []*whole, names []string) (*whole, error) {
	first := parts[0]
	if first.plan.Shard == nil {
		return nil, fmt.Errorf("%s is not the report of a shard: there is nothing to join", schemas.Text(names[0]))
	}
	there := map[int]string{}
	for i, p := range parts {
		if err := p.of(first); err != nil {
			return nil, fmt.Errorf("%s and %s: %w", schemas.Text(names[0]), schemas.Text(names[i]), err)
		}
		if other, twice := there[p.plan.Shard.Index]; twice {
			return nil, fmt.Errorf("%s and %s are both shard %d", other, schemas.Text(names[i]), p.plan.Shard.Index)
		}
		there[p.plan.Shard.Index] = schemas.Text(names[i])
	}
	for i := 1; i <= first.plan.Shard.Count; i++ {
		if there[i] == "" {
			return nil, fmt.Errorf("shard %d of %d is missing", i, first.plan.Shard.Count)
		}
	}
	w := &whole{plan: first.plan, bare: first.bare}
	w.plan.Shard = nil
	for i := range first.faults {
		var list []Run
		var all seen
		for _, p := range parts {
			list = append(list, p.faults[i].Runs...)
			if !all.take(&p.faults[i].Drift, p.faults[i].Runs) {
				return nil, fmt.Errorf("fault %.64s: a set that no capability surface has", first.faults[i].Name)
			}
		}
		kept, _ := counted(list, w.plan.Policy)
		w.faults = append(w.faults, FaultResult{Name: first.faults[i].Name, Wrapper: first.faults[i].Wrapper, Runs: orNone(kept),
			Results: results(kept, &w.plan), Drift: all.drift(kept)})
	}
	return w, nil
}

// of reports why two parts are not of one soak.
func (w *whole) of(first *whole) error {
	if w.plan.Shard == nil || w.plan.Shard.Count != first.plan.Shard.Count || w.bare != first.bare {
		return errors.New("they are not shards of one soak, of the same form")
	}
	a, b := w.plan, first.plan
	a.Shard, b.Shard = nil, nil
	same, err := equal(a, b)
	if err == nil && !same {
		err = errors.New("they are of different soaks: compare iterations, seed, packs, decision_policy, time_budget_secs, suite and limits")
	}
	if err != nil {
		return err
	}
	if len(w.faults) != len(first.faults) {
		return errors.New("they have different faults")
	}
	for i := range w.faults {
		if w.faults[i].Name != first.faults[i].Name || !slices.Equal(w.faults[i].Wrapper, first.faults[i].Wrapper) {
			return errors.New("they have different faults")
		}
	}
	return nil
}
