//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// soak measures what runner-soak adds to the runs that it makes: judging each of them included. The
// command is the loop that starts programs, for about a second.
func (b *bench) soak() error {
	const iterations, programs = 5, 1000
	command := []string{"--", b.self, workloadArg, "spawn", "/bin/true", strconv.Itoa(programs)}
	dir := filepath.Join(b.dir, "soak")
	defer os.RemoveAll(dir)
	var whole series
	var p, m sample
	runs := 0
	book := func() {
		if runs++; runs%2 == 0 {
			whole.add(p.wall, m.wall)
		}
	}
	err := interleave(b.n(5, 3), func() error {
		p = sample{}
		for range iterations {
			s, err := b.execute(nil, append([]string{b.tool("runner-exec"), "--archive", b.archive(), "--force"}, command...)...)
			if err != nil {
				return err
			}
			p.wall += s.wall
		}
		book()
		return nil
	}, func() (err error) {
		if err = os.RemoveAll(dir); err != nil {
			return err
		}
		m, err = b.execute(nil, append([]string{b.tool("runner-soak"), "--iterations", strconv.Itoa(iterations), "--dir", dir}, command...)...)
		book()
		return err
	})
	if err != nil {
		return err
	}
	r, l := median(whole.ratios()), atMost(1.05)
	b.table.add(row{what: fmt.Sprintf("runner-soak, %d runs", iterations), plain: seconds(median(whole.plain)), measured: seconds(median(whole.measured)),
		ratio: times(r), spread: span(whole.ratios(), "%.2f"), target: l.text, verdict: l.verdict(r, true), note: "plain: the same runs by runner-exec; soak verifies and lints each"})
	return nil
}
