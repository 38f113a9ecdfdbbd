//go:build linux

package main

import "fmt"

// interleave runs n pairs, the plain run first in every other pair, so that neither
// side always runs with the caches of the other.
func interleave(n int, plain, measured func() error) error {
	for i := range n {
		first, second := plain, measured
		if i%2 == 1 {
			first, second = measured, plain
		}
		if err := first(); err != nil {
			return err
		}
		if err := second(); err != nil {
			return err
		}
	}
	return nil
}

// comparison is everything that the pairs of one workload gave.
type comparison struct {
	whole series    // seconds of the whole process
	loop  series    // seconds by the workload's own clock
	cpu   series    // CPU seconds of only the workload, user and system
	own   []float64 // CPU seconds of the runner's own processes
	was   before    // the same with the tools of bench -before
	bad   []string  // what is wrong with a record
}

// before are the pairs with other tools.
type before struct{ whole, loop series }

// compare runs a workload in pairs. check looks at each record, whose archive is
// overwritten by the next one.
func (b *bench) compare(n int, argv []string, check func(archive string) error) (*comparison, error) {
	c := &comparison{}
	var p, m sample
	runs := 0
	err := interleave(n, func() (err error) {
		p, err = b.plain(argv...)
		runs++
		c.book(runs, p, m)
		return err
	}, func() (err error) {
		if m, err = b.measured(argv...); err != nil {
			return err
		}
		c.own = append(c.own, m.cpu-m.loopCPU)
		if bad := check(b.archive()); bad != nil {
			c.bad = append(c.bad, bad.Error())
		}
		runs++
		c.book(runs, p, m)
		return nil
	})
	for i := 0; err == nil && b.before != "" && i < n; i++ {
		err = interleave(1, func() (err error) { p, err = b.plain(argv...); return err },
			func() (err error) { m, err = b.measuredBefore(argv...); return err })
		c.was.whole.add(p.wall, m.wall)
		c.was.loop.add(p.loop, m.loop)
	}
	return c, err
}

// book adds a pair after both of its runs.
func (c *comparison) book(runs int, p, m sample) {
	if runs%2 == 0 {
		c.whole.add(p.wall, m.wall)
		c.loop.add(p.loop, m.loop)
		c.cpu.add(p.loopCPU, m.loopCPU)
	}
}

// loss is "" if every record was complete.
func (c *comparison) loss() string {
	if len(c.bad) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d runs: %s", len(c.bad), len(c.own), c.bad[0])
}

// row judges the wall clock of the series s. An emulated machine records CPU time: the runner's own work is not the command's there either,
// but takes the same core.
func (c *comparison) row(what string, s *series, l limit, note string) row {
	r := median(s.ratios())
	if bad := c.loss(); bad != "" {
		note = bad
	}
	was := ""
	if old := map[*series]*series{&c.whole: &c.was.whole, &c.loop: &c.was.loop}[s]; old != nil && len(old.plain) > 0 {
		was = times(median(old.ratios()))
	}
	return row{
		before: was,
		what:   what, plain: seconds(median(s.plain)), measured: seconds(median(s.measured)),
		ratio: times(r), spread: span(s.ratios(), "%.2f"), cpu: times(median(c.cpu.ratios())),
		target: l.text, verdict: l.verdict(r, len(c.bad) == 0), note: note,
		value: times(median(c.cpu.ratios())), between: span(c.cpu.ratios(), "%.2f"),
	}
}
