//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/runner-evidence/runner/schemas"
)

// versions measures how long a tool takes that has nothing to do.
func (b *bench) versions() error {
	tools, err := filepath.Glob(b.tool("runner-*"))
	if err != nil {
		return err
	}
	for _, path := range tools {
		var wall, cpu []float64
		for range b.n(15, 7) {
			s, err := b.execute(nil, path, "--version")
			if err != nil {
				return err
			}
			wall, cpu = append(wall, s.wall), append(cpu, s.cpu)
		}
		m, l := median(wall), limit{bound: 0.003, text: "<= 3ms"}
		b.table.add(row{what: filepath.Base(path) + " --version", measured: seconds(m), spread: span(milli(wall), "%.1f") + "ms",
			target: l.text, verdict: l.verdict(m, true), note: "CPU " + seconds(median(cpu))})
	}
	return nil
}

// many measures the open loop in several processes at once.
func (b *bench) many() error {
	count := b.sizes().together
	file := filepath.Join(b.dir, "opened")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return err
	}
	for _, n := range processCounts {
		c, err := b.compare(b.n(5, 3), []string{"opens", file, fmt.Sprint(count), fmt.Sprint(n)}, counted(schemas.EventOpenat, file, count))
		if err != nil {
			return err
		}
		r := c.row(rowMany(n), &c.loop, atMost(1.6), fmt.Sprintf("all recorded, 0 dropped; runner's own CPU %s", seconds(median(c.own))))
		// The processes and the runner want the same cores, which the time on the clock says and CPU time does not.
		r.value, r.between, r.of = r.ratio, r.spread, fmt.Sprintf("time on the clock, %d cores, %s opens in all", runtime.NumCPU(), thousands(int64(count)))
		b.table.add(r)
	}
	return nil
}

// afterwards measures what is left to do when the command has ended, what room it takes until then, and the memory of runner-capture.
func (b *bench) afterwards() error {
	count := b.sizes().together
	file := filepath.Join(b.dir, "opened")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		return err
	}
	var after, verbose series // beside runner-verify, which reads and digests the same archive
	var bad error
	for range b.n(5, 3) {
		s, err := b.measured("open", file, fmt.Sprint(count))
		if err != nil {
			return err
		}
		q, err := b.timed([]string{b.tool("runner-exec"), "--run-id", "bench", "--archive", b.archive(), "--force", "--"}, []string{"open", file, fmt.Sprint(count)})
		if err != nil {
			return err
		}
		v, err := b.execute(nil, b.tool("runner-verify"), b.archive())
		if err != nil {
			return err
		}
		after.add(v.wall, q.after)
		verbose.add(v.wall, s.after)
		if err := counted(schemas.EventOpenat, file, count)(b.archive()); err != nil {
			bad = err
		}
	}
	m, l := median(after.measured), limit{bound: 0.4, text: "<= 400ms"}
	of := fmt.Sprintf("to runner-verify of this archive, %s opens", thousands(int64(count)))
	note := "as README calls runner-exec; ratio: " + of + "; all recorded, 0 dropped"
	if bad != nil {
		note = bad.Error()
	}
	ratio, with := times(median(after.ratios())), times(median(verbose.ratios()))
	b.table.add(row{what: rowAfter, plain: seconds(median(after.plain)), measured: seconds(m), ratio: ratio, spread: span(milli(after.measured), "%.0f") + "ms",
		target: l.text, verdict: l.verdict(m, bad == nil), note: note, value: ratio, of: of, between: span(after.ratios(), "%.2f")})
	b.table.add(row{what: rowVerbose, measured: seconds(median(verbose.measured)), ratio: with, spread: span(milli(verbose.measured), "%.0f") + "ms",
		note: "which digests everything once more, for the identity that it prints", value: with, of: of, between: span(verbose.ratios(), "%.2f")})
	return b.room(file)
}

// room measures the temporary disk of a run of many opens.
func (b *bench) room(file string) error {
	count := b.sizes().disk
	u, err := b.watched("open", file, fmt.Sprint(count))
	if err != nil {
		return err
	}
	bad := counted(schemas.EventOpenat, file, count)(b.archive())
	events := thousands(int64(count)) + " events"
	note := events + ", nameless files of all stages; ratio: bytes for each; all recorded, 0 dropped"
	if bad != nil {
		note = bad.Error()
	}
	most := limit{bound: 120 * float64(count), text: fmt.Sprintf("<= %d MB", 120*count/million)} // 1.2 GB for ten million
	each := fmt.Sprintf("%.0fB", float64(u.disk)/float64(count))
	b.table.add(row{what: rowDisk, measured: fmt.Sprintf("%d MB", u.disk/1e6), ratio: each,
		target: most.text, verdict: most.verdict(float64(u.disk), bad == nil), note: note, value: each, of: "for each of " + events})
	rss := limit{bound: 24 << 20, text: "<= 24 MiB"}
	n := u.rss["runner-capture"]
	set := fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	b.table.add(row{what: rowRSS, measured: set, target: rss.text, verdict: rss.verdict(float64(n), n > 0), note: "the same run", value: set, of: "a run of " + events})
	return nil
}
