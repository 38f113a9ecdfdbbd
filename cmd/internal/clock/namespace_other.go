//go:build !linux

package clock

// Shifted reports whether CLOCK_MONOTONIC here is another than that of the kernel
// events; there are none.
func Shifted() bool { return false }
