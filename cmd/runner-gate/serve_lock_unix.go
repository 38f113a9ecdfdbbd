//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockWhole takes the lock of a file, and reports whether nobody else has it. It ends with the process.
func lockWhole(f *os.File) bool { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil }

// private says why others can look into a directory, or write there; nil if they cannot.
func private(info os.FileInfo) error {
	st, is := info.Sys().(*syscall.Stat_t)
	if !is || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("it is not ours alone, expected owner %d and mode 0700", os.Geteuid())
	}
	return nil
}
