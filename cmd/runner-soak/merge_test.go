package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// invented is a soak as one machine or some shards would have run it: what happens in a run depends on its
// number only. More than what is counted may have run.
func invented(r *rand.Rand, iterations, shards int, p Policy) (one *whole, parts []*whole) {
	plan := Plan{Iterations: iterations, Seed: 7, Budget: 60, Limits: readLimits(), Packs: []schemas.PackRef{{Name: "p", Version: "1.0.0", Kind: "quality", Digest: "sha256:" + strings.Repeat("0", 64)}}, Policy: p}
	faults := []Fault{{noFault, []string{}}, {"slow", []string{"nice", "-n", "19"}}}
	all := make([]map[int]Run, len(faults))
	values := make([]map[int][]string, len(faults))
	for f := range faults {
		all[f], values[f] = map[int]Run{}, map[int][]string{}
		for i := 1; i <= iterations; i++ {
			seed := seedOf(plan.Seed, i)
			run := Run{Index: i, Seed: &seed, Status: statusPass, DurationMS: int64(r.IntN(100))}
			switch r.IntN(8) {
			case 0:
				run.Status, run.ViolatedRules = statusFail, []string{"p@1.0.0:a"}
			case 1:
				run.Status, run.Kind, run.Message = statusInfra, kindSubprocess, "it ended"
			case 2:
				run.ViolatedRules = []string{"p@1.0.0:b"}
			}
			all[f][i] = run
			for v := range 6 {
				if r.IntN(3) > 0 || v == 0 {
					values[f][i] = append(values[f][i], fmt.Sprintf("/tmp/%d", v))
				}
			}
		}
	}
	machine := func(s *Shard) *whole {
		w := &whole{plan: plan}
		w.plan.Shard = s
		for f := range faults {
			var list []Run
			var all2 seen
			failures := 0
			beyond := r.IntN(3) // runs that had begun when it stopped
			for i := 1; i <= iterations; i++ {
				if !s.has(i) {
					continue
				}
				if p.stops(failures) {
					if beyond--; beyond < 0 {
						break
					}
				}
				run := all[f][i]
				if run.Status == statusFail {
					failures++
				}
				list = append(list, run)
				for _, v := range values[f][i] {
					if run.Status != statusInfra {
						all2.add(i, 0, v)
					}
				}
			}
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			kept, _ := counted(list, p)
			w.faults = append(w.faults, FaultResult{Name: faults[f].Name, Wrapper: faults[f].Wrapper, Runs: orNone(kept), Results: results(kept, &w.plan), Drift: all2.drift(kept)})
		}
		return w
	}
	for i := range shards {
		parts = append(parts, machine(&Shard{i + 1, shards}))
	}
	return machine(nil), parts
}

func surfaceOf(t *testing.T, w *whole) []byte {
	b, err := schemas.Marshal(Surface{Version: schemas.VersionSoakSurface, Plan: w.plan, Faults: w.faults})
	testkit.Must(t, err)
	return b
}

func reportOf(t *testing.T, w *whole) []byte {
	b, err := schemas.Marshal(Report{Version: schemas.VersionSoakReport, Mode: modeSoak, Plan: w.plan, Results: w.faults[0].Results, Runs: w.faults[0].Runs})
	testkit.Must(t, err)
	return b
}

// TestShards: the shards of a soak, merged in any order, are what one machine writes, byte for byte:
// under every policy, whatever had begun when it stopped.
func TestShards(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		p := Policy{FailOn: "error"}
		switch i % 3 {
		case 1:
			p.StopOnFirst = true
		case 2:
			p.MaxFailures = 1 + r.IntN(4)
		}
		iterations := 1 + r.IntN(25)
		one, parts := invented(r, iterations, 1+r.IntN(min(iterations, 5)), p)
		names := make([]string, len(parts))
		var again, bare []*whole
		for j, part := range parts {
			names[j] = fmt.Sprint("part ", j)
			w, err := parseWhole(surfaceOf(t, part))
			testkit.Must(t, err)
			b, err := parseWhole(reportOf(t, part))
			testkit.Must(t, err)
			again, bare = append(again, w), append(bare, b)
		}
		r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		merged, err := join(again, names)
		testkit.Must(t, err)
		if have, want := string(surfaceOf(t, merged)), string(surfaceOf(t, one)); have != want {
			t.Fatalf("%+v, %d iterations, %d shards:\n%s\nexpected\n%s", p, iterations, len(parts), have, want)
		}
		merged, err = join(bare, names)
		testkit.Must(t, err)
		if have, want := string(reportOf(t, merged)), string(reportOf(t, one)); have != want {
			t.Fatalf("%s\nexpected\n%s", have, want)
		}
	}
}

// TestNotShards: what is not all shards of one soak is not merged, and why is said.
func TestNotShards(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	_, parts := invented(r, 9, 3, Policy{FailOn: "error"})
	whole1, other := invented(r, 9, 3, Policy{FailOn: "warning"})
	names := []string{"a", "b", "c", "d"}
	report, err := parseWhole(reportOf(t, parts[1]))
	testkit.Must(t, err)
	for want, list := range map[string][]*whole{
		"shard 3 of 3 is missing": parts[:2], "a and b are both shard 1": {parts[0], parts[0], parts[2]}, "of different soaks": {parts[0], other[1], parts[2]},
		"not the report of a shard": {whole1}, "of the same form": {parts[0], report, parts[2]}, "a and d are both shard 1": append(slices.Clone(parts), parts[0]),
	} {
		if _, err := join(list, names); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %s", err, want)
		}
	}
	good := string(surfaceOf(t, parts[0]))
	for _, c := range [][2]string{
		{`"passes":`, `"passes":1`}, {`"status":"pass"`, `"status":"passed"`}, {`"iterations":9`, `"iterations":0`}, {`"index":1,"count":3`, `"index":4,"count":3`},
		{`"index":4`, `"index":5`}, {`"seed":7`, `"seed":7,"sed":7`}, {schemas.VersionSoakSurface, "soak-surface-v2"}, {`"stopped_early":false`, `"stopped_early":true`},
		{`"status":"infra_error"`, `"status":"pass"`},
	} {
		if !strings.Contains(good, c[0]) {
			continue
		}
		if _, err := parseWhole([]byte(strings.Replace(good, c[0], c[1], 1))); err == nil {
			t.Errorf("%s in place of %s is taken", c[1], c[0])
		}
	}
}

// FuzzReport: what is taken can be merged or is refused, and nothing panics.
func FuzzReport(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	_, parts := invented(r, 4, 2, Policy{FailOn: "error"})
	for _, p := range parts {
		b, _ := schemas.Marshal(Surface{Version: schemas.VersionSoakSurface, Plan: p.plan, Faults: p.faults})
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := parseWhole(b)
		if err != nil {
			return
		}
		join([]*whole{w}, []string{"a"})
		join([]*whole{w, w}, []string{"a", "b"})
		w.text(&strings.Builder{}, nil)
	})
}

// TestDriftBounds: of more values than are listed, the first ones are, in whatever order runs came.
func TestDriftBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	list := make([]string, 2*maxValues+maxValues/2)
	for i := range list {
		list[i] = fmt.Sprintf("/v/%06d", i)
	}
	runs := []Run{{Index: 1, Status: statusPass}, {Index: 2, Status: statusFail}, {Index: 3, Status: statusInfra}}
	var want string
	for range 3 {
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		var s seen
		for _, v := range list {
			s.add(1, 0, v)
			if v < "/v/000010" {
				s.add(2, 0, v)
			}
		}
		d := s.drift(runs)
		if d.Runs != 2 || d.Values != maxValues || d.Changing != maxValues-10 || !d.Cut || d.Capabilities[maxValues-1].Value != fmt.Sprintf("/v/%06d", maxValues-1) {
			t.Errorf("%d runs, %d values, %d changing, cut %t", d.Runs, d.Values, d.Changing, d.Cut)
		}
		b, err := schemas.Marshal(d)
		testkit.Must(t, err)
		if want == "" {
			want = string(b)
		}
		if string(b) != want {
			t.Error("the order of the values matters")
		}
	}
}
