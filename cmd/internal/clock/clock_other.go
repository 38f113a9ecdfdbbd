//go:build !unix

package clock

import "time"

var began = time.Now()

// Monotonic is a clock that never goes back. No kernel layer is made here that its
// times would be joined to.
func Monotonic() uint64 { return uint64(time.Since(began)) + 1 }
