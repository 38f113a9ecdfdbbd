//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/testdata/kernels/guest"
)

// cost measures what the probes add to the CPU time of calls, inside of a run and outside. On an emulated machine seconds say nothing,
// but both sides of a ratio are emulated alike: so it says what a kernel that this machine does not run makes of the probes.
func (b *bench) cost() error {
	const opens, names, calls = 50_000, 20_000, 500_000
	file := filepath.Join(b.dir, "opened")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return err
	}
	for _, w := range []struct {
		what  string
		argv  []string
		check func(string) error
	}{
		{"open+close", []string{"open", file, fmt.Sprint(opens)}, counted(schemas.EventOpenat, file, opens)},
		{"opens of names that do not exist", []string{"names", b.dir, fmt.Sprint(names)}, b.distinct(names)},
	} {
		c, err := b.compare(b.n(3, 3), w.argv, w.check)
		if err != nil {
			return err
		}
		r := median(c.cpu.ratios())
		note := "all recorded, 0 dropped"
		if bad := c.loss(); bad != "" {
			note = bad
		}
		b.table.add(row{what: w.what + ", measured", ratio: times(r), spread: span(c.cpu.ratios(), "%.2f"), note: note})
	}
	unmount, err := b.bpfMount()
	if err != nil {
		return err
	}
	defer unmount()
	for _, outside := range []struct {
		what string
		argv []string
	}{{"getppid", []string{"getppid", fmt.Sprint(calls)}}, {"open+close", []string{"open", file, fmt.Sprint(opens)}}} {
		for _, n := range []int{1, 3} {
			if err := b.costOutside(outside.what, outside.argv, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// costOutside measures a process outside of n runs, in pairs with and without them. They share probes where the kernel allows it.
func (b *bench) costOutside(what string, argv []string, n int) error {
	var all series
	for range b.n(3, 3) {
		p, err := b.plain(argv...)
		if err != nil {
			return err
		}
		stop, err := b.running(n)
		if err == nil {
			var m sample
			if m, err = b.plain(argv...); err == nil {
				all.add(p.loopCPU, m.loopCPU)
			}
		}
		stop()
		if err != nil {
			return err
		}
	}
	b.table.add(row{what: fmt.Sprintf("%s of a process outside, %d runs", what, n), ratio: times(median(all.ratios())), spread: span(all.ratios(), "%.2f")})
	return nil
}

// writeLines prints each row as a result of a guest of the lane.
func (b *bench) writeLines(w io.Writer) error {
	out := json.NewEncoder(w)
	for _, r := range b.table.rows {
		l := guest.Line{Check: r.what, Result: guest.OK, Detail: strings.TrimSpace(fmt.Sprintf("CPU time %s times (%s) %s", r.ratio, r.spread, r.note))}
		if r.ratio == "" {
			l = guest.Line{Check: r.what, Result: guest.Failed, Detail: r.note}
		}
		if err := out.Encode(l); err != nil {
			return err
		}
	}
	return nil
}
