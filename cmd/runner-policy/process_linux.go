package main

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// apart puts the server into a process group of its own, so that what it started is
// ended with it, and lets the kernel kill it when the thread that started it is gone,
// that is when the proxy is. What the server started and what changed its privileges
// is told of the proxy's end by the end of the pipes alone.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// widen makes room for a large answer: fewer turns of writer and reader.
func widen(f io.Writer) {
	const room = 1 << 20
	if f, ok := f.(*os.File); ok {
		fd := uintptr(descriptorOf(f))
		if n, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil && n < room {
			unix.FcntlInt(fd, unix.F_SETPIPE_SZ, room)
		}
	}
}

// awaitExit returns when the process has ended. It is not reaped yet, so its number,
// which is that of its group, belongs to nobody else.
func (s *server) awaitExit() {
	var info unix.Siginfo
	retry(func() error {
		return unix.Waitid(unix.P_PID, s.process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
	})
}

// hide keeps processes of the same user, as the server is one, from our memory and our
// descriptors, the log among them.
func hide() { unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
