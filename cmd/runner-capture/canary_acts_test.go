//go:build linux

package main

import (
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// A program that is run in the place of the second canary names the right path, but also does
// something that the first one did not: then it was not the canary, and its events stay.
func TestCanaryReplaced(t *testing.T) {
	const pid = 7
	acts := func(marker string, more ...schemas.RawEvent) (held []heldEvent) {
		for _, e := range append([]schemas.RawEvent{{Op: schemas.OpExec, UserPath: []byte(marker)}}, more...) {
			e.PID, e.TID = pid, pid
			held = append(held, heldEvent{e: e})
		}
		return held
	}
	for name, c := range map[string]struct {
		second []heldEvent
		seen   bool
	}{
		"the same":     {acts("second"), true},
		"another exec": {acts("second", schemas.RawEvent{Op: schemas.OpExec, Path: []byte("/tmp/hostile")}), false},
		"another open": {acts("second", schemas.RawEvent{Op: schemas.OpOpenat, Path: []byte("/etc/shadow")}), false},
		"an unlink":    {acts("second", schemas.RawEvent{Op: schemas.OpUnlink, UserPath: []byte("/proc/7/cgroup")}), false},
	} {
		t.Run(name, func(t *testing.T) {
			v := newEvents("run", newLines("run", newSpool(0)))
			for i, held := range [][]heldEvent{acts("first"), c.second} {
				v.hold([]string{"first", "second"}[i])
				v.held, v.sawCanary, v.canaryPID = held, true, pid
				seen, err := v.release()
				if err != nil || seen != (i == 0 || c.seen) {
					t.Errorf("canary %d: seen %v, %v", i, seen, err)
				}
			}
			if want := uint64(len(c.second)); !c.seen && v.n.out != want || c.seen && v.n.out != 0 {
				t.Errorf("%d events stay of %d", v.n.out, want)
			}
		})
	}
}
