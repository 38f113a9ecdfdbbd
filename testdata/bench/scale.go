//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/schemas"
)

// scale measures whether a run of many events, names or processes costs more for each than one of few.
func (b *bench) scale() error {
	file := filepath.Join(b.dir, "opened")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return err
	}
	size := b.sizes()
	var first float64
	for _, n := range size.scale {
		c, err := b.compare(b.n(3, 1), []string{"open", file, fmt.Sprint(n)}, counted(schemas.EventOpenat, file, n))
		if err != nil {
			return err
		}
		own := median(c.own) / float64(n) * 1e9
		l := limit{}
		if n == million {
			first = own
		} else if n > million {
			l = limit{bound: 1.25 * first, text: fmt.Sprintf("<= %.0fns", 1.25*first)}
		}
		r := c.row("open+close, "+thousands(int64(n))+" times", &c.loop, atMost(1.45), fmt.Sprintf("runner's own CPU %.0fns for each", own))
		b.table.add(r)
		if l.text != "" {
			b.table.add(row{what: "  runner's own CPU for each", measured: fmt.Sprintf("%.0fns", own), target: l.text, verdict: l.verdict(own, len(c.bad) == 0), note: "no more than a quarter above that of 1,000,000"})
		}
	}
	c, err := b.compare(b.n(3, 1), []string{"names", b.dir, fmt.Sprint(size.names)}, b.distinct(size.names))
	if err != nil {
		return err
	}
	r := c.row(rowNames, &c.loop, limit{}, fmt.Sprintf("all recorded, 0 dropped; runner's own CPU %s", seconds(median(c.own))))
	b.table.add(r.ofCPU("%s names", size.names))
	c, err = b.compare(b.n(3, 1), []string{"forks", fmt.Sprint(size.forks)}, whole)
	if err != nil {
		return err
	}
	r = c.row(rowForks, &c.loop, atMost(1.1), fmt.Sprintf("%s forks, 0 dropped; runner's own CPU %s", thousands(int64(size.forks)), seconds(median(c.own))))
	b.table.add(r.ofCPU("%s forks", size.forks))
	return nil
}

// distinct is a check: n names below the directory of the workload, each once.
func (b *bench) distinct(n int) func(string) error {
	return func(archive string) error {
		// Not a map of names: the memory of this program counts as that of those it starts.
		seen, found, front := make([]bool, n), 0, b.dir+"/name_"
		rec, err := readRecord(archive, func(e uint32, v []byte) {
			if e != schemas.EventOpenat || !strings.HasPrefix(string(v), front) {
				return
			}
			if i, err := strconv.Atoi(string(v[len(front):])); err == nil && i < n && !seen[i] {
				seen[i] = true
				found++
			}
		})
		if err != nil {
			return err
		}
		if found != n {
			return fmt.Errorf("%s names of %s recorded", thousands(int64(found)), thousands(int64(n)))
		}
		return rec.whole()
	}
}

// whole is a check: the record is complete.
func whole(archive string) error {
	rec, err := readRecord(archive, func(uint32, []byte) {})
	if err != nil {
		return err
	}
	return rec.whole()
}
