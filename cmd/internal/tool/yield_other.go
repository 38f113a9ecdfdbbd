//go:build !linux

package tool

// Background makes the whole process yield the processor to everyone else, where
// this package knows how; elsewhere it does nothing.
func Background() {}

// Foreground does nothing here.
func Foreground() {}
