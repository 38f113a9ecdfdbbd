// Package clock reads the clocks for the times of a run.
package clock

import (
	"time"

	"github.com/runner-evidence/runner/schemas"
)

// Both reads CLOCK_MONOTONIC and CLOCK_REALTIME as close together as possible: it reads
// them a few times and keeps the reading that took the least time.
func Both() schemas.RunClock {
	var best schemas.RunClock
	least := ^uint64(0)
	for range 8 {
		before := Monotonic()
		wall := time.Now().UnixNano()
		if took := Monotonic() - before; took < least {
			least = took
			best = schemas.RunClock{MonotonicNS: before, RealtimeNS: uint64(wall)}
		}
	}
	return best
}
