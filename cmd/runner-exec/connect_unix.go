//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// connect returns the two ends of a one-way connection. A socket, because root could open a
// pipe through /proc, and so read away what one stage writes to the next and write something else.
func connect() (r, w *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20) // so that its writer and its reader take turns less often
	}
	unix.Shutdown(fds[0], unix.SHUT_WR)
	unix.Shutdown(fds[1], unix.SHUT_RD)
	return os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"), nil
}
