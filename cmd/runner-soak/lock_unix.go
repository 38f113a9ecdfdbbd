//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockWhole takes the lock of a file, and reports whether nobody else has it.
func lockWhole(f *os.File) bool { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil }
