//go:build !unix

package clock

import "time"

var began = time.Now()

// Monotonic is a clock that never goes back. There is no kernel layer on this system, so
// it need not be the kernel's clock.
func Monotonic() uint64 { return uint64(time.Since(began)) + 1 }
