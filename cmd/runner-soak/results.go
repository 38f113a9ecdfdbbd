package main

import (
	"math/big"
	"slices"
)

// counted are the runs that a soak with this policy has: in the order of their numbers, up to the one
// at which it stops. What ran at the same time, or on another machine, changes nothing.
func counted(runs []Run, p Policy) (kept, left []Run) {
	slices.SortFunc(runs, func(a, b Run) int { return a.Index - b.Index })
	failures := 0
	for i := range runs {
		if runs[i].Status == statusFail {
			failures++
		}
		if p.stops(failures) {
			return runs[:i+1], runs[i+1:]
		}
	}
	return runs, nil
}

// stops reports whether so many failures end the soak.
func (p Policy) stops(failures int) bool {
	return p.StopOnFirst && failures > 0 || p.MaxFailures > 0 && failures >= p.MaxFailures
}

// waits reports whether the next run may begin only after the last one was judged.
func (p Policy) waits() bool { return p.StopOnFirst || p.MaxFailures > 0 }

// results adds up runs that are counted.
func results(runs []Run, plan *Plan) Results {
	r := Results{Runs: len(runs), Estimators: estimators}
	for i := range runs {
		run := &runs[i]
		switch run.Status {
		case statusPass:
			r.Passes++
		case statusFail:
			r.Failures++
			if r.FirstFailure == nil {
				r.FirstFailure = &run.Index
			}
		default:
			r.InfraErrors++
			add(&r.ByKind, run.Kind)
		}
		for _, rule := range run.ViolatedRules {
			add(&r.ByRule, rule)
		}
	}
	c, n := r.Passes, r.Passes+r.Failures
	if n > 0 {
		r.PassRate, _ = big.NewRat(int64(c), int64(n)).Float64()
		ends := wilson(c, n)
		r.Interval = &ends
	}
	r.Probability = posterior(c, n, 1)
	for _, k := range ks {
		p := PassK{K: k, Posterior: posterior(c, n, k)}
		if k <= n {
			u := unbiased(c, n, k)
			p.Unbiased = &u
		}
		r.PassK = append(r.PassK, p)
	}
	want := plan.share()
	r.StoppedEarly = len(runs) < want
	r.PassAll = r.Passes == want
	return r
}

// share is how many iterations a plan has, or its shard.
func (p *Plan) share() int {
	if p.Shard == nil {
		return p.Iterations
	}
	return max(0, (p.Iterations-p.Shard.Index)/p.Shard.Count+1)
}

func add(m *map[string]int, key string) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[key]++
}
