//go:build !linux

package tool

// Background does nothing on this system.
func Background() {}

// Foreground does nothing on this system.
func Foreground() {}
