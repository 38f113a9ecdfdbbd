//go:build !linux

package netns

// IsInside reports whether this program was started as the process inside.
func IsInside() bool { return false }

// Inside is not reached.
func Inside() {}
