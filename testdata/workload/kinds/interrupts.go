//go:build linux

package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

const saRestart = 0x10000000

// interrupts makes calls that a signal interrupts while they wait. Most start over by
// themselves: the program makes each of them once.
func interrupts() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGUSR1)
	defer signal.Stop(c)

	fifo := at("M-wait")
	one("mknodat", 223, fifo, unix.SYS_MKNODAT, fdArg(cwd), made.Str(fifo), unix.S_IFIFO|0o600, 0)
	open := func(flags uint64) int64 {
		return made.Call(unix.SYS_OPENAT, fdArg(cwd), made.Str(fifo), uintptr(flags), 0)
	}
	opened := func(op string, flags uint64, fd int64) {
		made.Line(op, 1, fifo, fd, made.Flags(flags, 0))
		unix.Close(int(fd))
	}
	var writer int64
	fd := signaled(func() int64 { return open(unix.O_RDONLY) }, func() { writer = open(unix.O_WRONLY) })
	opened("over-open", unix.O_RDONLY, made.Must("open of a pipe", fd))
	opened("over-writer", unix.O_WRONLY, made.Must("open of a pipe", writer))

	name := "@M-wait-" + filepath.Base(dir)
	l := socket(unix.AF_UNIX, unix.SOCK_STREAM)
	withAddr("over-bind", 203, unix.SYS_BIND, l, rawUnix(name), "unix:"+name)
	made.Line("over-listen", 204, "unix:"+name, made.Call(unix.SYS_LISTEN, uintptr(l), 0))
	for range 2 { // the second waits for the first to be accepted
		fd := socket(unix.AF_UNIX, unix.SOCK_STREAM)
		defer unix.Close(fd)
		made.Must("connect", signaled(func() int64 { return withAddr("over-connect", 2, unix.SYS_CONNECT, fd, rawUnix(name), "unix:"+name) },
			func() { unix.Accept(l) }))
	}
	unix.Close(l)

	// Without SA_RESTART the program gets EINTR, and makes the call again.
	var action [8]uintptr // the flags are the second word
	restarts := func(yes bool) {
		made.Must("rt_sigaction", made.Call(unix.SYS_RT_SIGACTION, uintptr(unix.SIGUSR1), 0, uintptr(unsafe.Pointer(&action[0])), 8))
		action[1] &^= saRestart
		if yes {
			action[1] |= saRestart
		}
		made.Must("rt_sigaction", made.Call(unix.SYS_RT_SIGACTION, uintptr(unix.SIGUSR1), uintptr(unsafe.Pointer(&action[0])), 0, 8))
	}
	restarts(false)
	for range 2 {
		opened("eintr-open", unix.O_RDONLY, signaled(func() int64 { return open(unix.O_RDONLY) }, nil))
	}
	restarts(true)
}

// signaled makes a call while another thread sends signals to this one. After some of them,
// it ends the wait.
func signaled(call func() int64, end func()) int64 {
	pid, tid := os.Getpid(), unix.Gettid()
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			if i == 5 && end != nil {
				end()
			}
			if i < 5 || end == nil {
				unix.Tgkill(pid, tid, unix.SIGUSR1)
			}
		}
	}()
	r := call()
	close(stop)
	<-stopped
	return r
}
