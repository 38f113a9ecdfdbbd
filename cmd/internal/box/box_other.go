//go:build !linux

package box

// IsInit reports whether this program was started as process 1 of a box.
func IsInit() bool { return false }

// Init is not reached.
func Init() {}
