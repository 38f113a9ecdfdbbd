//go:build unix

package clock

import "golang.org/x/sys/unix"

// Monotonic is CLOCK_MONOTONIC in nanoseconds, the clock of the kernel events.
func Monotonic() uint64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return uint64(ts.Nano())
}
