//go:build !linux

package tool

// Background does nothing on this system.
func Background() {}

// Foreground does nothing on this system.
func Foreground() {}

// BackgroundChild does nothing on this system.
func BackgroundChild(int) {}

// NormalChild does nothing on this system.
func NormalChild(int) {}

// ForegroundChild does nothing on this system.
func ForegroundChild(int) {}
