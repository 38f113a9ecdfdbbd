package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// widen makes a pipe hold 1 MiB, the most an ordinary user may ask for, so that
// the stages change places less often. A refusal costs only speed.
func widen(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		c.Control(widenFD)
	}
}

func widenFD(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) }
