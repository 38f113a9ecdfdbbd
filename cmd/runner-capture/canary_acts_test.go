//go:build linux

package main

import (
	"fmt"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// A program that is run in the place of the second canary opens the right path, but also does
// something that the first one did not: then it was not the canary, and its events stay.
func TestCanaryReplaced(t *testing.T) {
	pid := uint32(7)
	root := "" // what the kernel puts before the names in a chroot
	acts := func(marker string, more ...schemas.RawEvent) (held []heldEvent) {
		for _, e := range append([]schemas.RawEvent{
			{Op: schemas.OpExec, Path: []byte("/usr/bin/runner-capture")},
			{Op: schemas.OpOpenat, Path: fmt.Appendf(nil, "%s/proc/%d/cgroup", root, pid)},
			{Op: schemas.OpOpenat, UserPath: []byte("/sys/fs/cgroup/x/cpu.max")},
			{Op: schemas.OpOpenat, UserPath: []byte(marker)},
		}, more...) {
			e.PID, e.TID = pid, pid
			held = append(held, heldEvent{e: e})
		}
		return held
	}
	t.Run("in a chroot", func(t *testing.T) {
		v := newEvents("run", newLines("run", newSpool(0)))
		for pid, root = range map[uint32]string{7: "/srv/root", 8: "/srv/root"} {
			v.hold("marker")
			v.held, v.sawCanary, v.canaryPID = acts("marker"), true, pid
			if seen, err := v.release(); err != nil || !seen {
				t.Errorf("canary %d: seen %v, %v", pid, seen, err)
			}
		}
		pid, root = 7, ""
	})
	for name, c := range map[string]struct {
		second []heldEvent
		seen   bool
	}{
		"the same":       {acts("second"), true},
		"limits are set": {acts("second", schemas.RawEvent{Op: schemas.OpOpenat, Path: []byte("/sys/fs/cgroup/x/cpu.max")}), true},
		"another exec":   {acts("second", schemas.RawEvent{Op: schemas.OpExec, Path: []byte("/tmp/hostile")}), false},
		"another open":   {acts("second", schemas.RawEvent{Op: schemas.OpOpenat, Path: []byte("/etc/shadow")}), false},
		"an unlink":      {acts("second", schemas.RawEvent{Op: schemas.OpUnlink, UserPath: []byte("/proc/7/cgroup")}), false},
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
