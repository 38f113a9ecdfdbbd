//go:build linux

package main

import (
	"cmp"
	"fmt"
	"os/exec"
	"runtime"
)

// besideBusy measures what runner-exec costs for a command that does nothing, where other programs want every processor for themselves:
// what has the lowest priority there waits for very long.
func (b *bench) besideBusy() error {
	const each = 2 // busy programs for each processor
	for range each * runtime.NumCPU() {
		busy := exec.Command("/bin/sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			return err
		}
		defer busy.Wait()
		defer busy.Process.Kill()
	}
	var plain, measured []float64
	var bad error
	err := interleave(b.n(9, 5), func() error {
		s, err := b.execute(nil, "/bin/true")
		plain = append(plain, s.wall)
		return err
	}, func() error {
		s, err := b.execute(nil, b.tool("runner-exec"), "--run-id", "bench", "--archive", b.archive(), "--", "/bin/true")
		if err != nil {
			return err
		}
		measured = append(measured, s.wall)
		rec, err := readRecord(b.archive(), func(uint32, []byte) {})
		if err == nil {
			bad = cmp.Or(bad, rec.whole())
		}
		return err
	})
	if err != nil {
		return err
	}
	note := fmt.Sprintf("%d runs", len(measured))
	if bad != nil {
		note = bad.Error()
	}
	b.table.add(row{what: fmt.Sprintf("runner-exec -- true, beside %d busy programs", each*runtime.NumCPU()), plain: seconds(median(plain)),
		measured: seconds(median(measured)), spread: span(milli(measured), "%.0f") + "ms", note: note})
	return nil
}
