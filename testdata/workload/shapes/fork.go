//go:build linux

package main

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// A script is what a forked child does: only raw system calls, because the child is one
// thread of a Go program without its other threads.
type script []step

// createHow must live outside the forked child's stack frames.
var createHow = unix.OpenHow{Flags: create, Mode: 0o644}

type step struct {
	nr uintptr
	a  [5]uintptr
	n  int // how often, 0 is once
}

func call(nr uintptr, a ...uintptr) step {
	s := step{nr: nr}
	copy(s.a[:], a)
	return s
}

func openStep(path string) step {
	return call(unix.SYS_OPENAT, cwd, made.Str(path), create, 0o644)
}

func nap(ms int64) step {
	ts := &unix.Timespec{Nsec: ms * 1e6}
	naps = append(naps, ts)
	return call(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(ts)), 0)
}

var naps []*unix.Timespec

// steps that are not system calls
const (
	forkStep     = ^uintptr(0) // fork again, the parent exits
	reopenStep   = ^uintptr(1) // open and close a[0], n times
	selfMoveStep = ^uintptr(2) // open a[0] for writing, write "0", close
	spawnStep    = ^uintptr(3) // a child that executes a[0] (0: ends at once), and wait for it, n times
)

// fork runs the script in a child and returns its pid. The child exits with the
// errno of the step that failed.
func fork(s script) int {
	s = append(script(nil), s...) // nothing in the child may allocate
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		made.Must("fork", -int64(errno))
	}
	if pid == 0 {
		play(s)
	}
	return int(pid)
}

var zero = [2]byte{'0', '\n'}

//go:norace
//go:nosplit
func play(s script) {
	var errno syscall.Errno
	for i := 0; i < len(s); i++ {
		st := &s[i]
		switch st.nr {
		case forkStep:
			var pid uintptr
			pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if errno == 0 && pid != 0 {
				syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
		case reopenStep:
			for n := 0; n < st.n && errno == 0; n++ {
				var fd uintptr
				// openat2, which the Go runtime never uses, so drops of it are drops of the hammer
				fd, _, errno = syscall.RawSyscall6(unix.SYS_OPENAT2, cwd, st.a[0], uintptr(unsafe.Pointer(&createHow)), unsafe.Sizeof(createHow), 0, 0)
				if errno == 0 {
					syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
				}
			}
		case selfMoveStep:
			errno = join(st.a[0])
		case spawnStep:
			for n := 0; n < st.n && errno == 0; n++ {
				errno = spawn(st.a[0])
			}
		default:
			_, _, errno = syscall.RawSyscall6(st.nr, st.a[0], st.a[1], st.a[2], st.a[3], st.a[4], 0)
		}
		if errno != 0 {
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
		}
	}
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// join moves the process to the group whose cgroup.procs this is.
//
//go:norace
//go:nosplit
func join(procs uintptr) syscall.Errno {
	fd, _, errno := syscall.RawSyscall6(unix.SYS_OPENAT, cwd, procs, unix.O_WRONLY, 0, 0, 0)
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(&zero[0])), 2)
		syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	}
	return errno
}

// spawn makes a child that executes a program, or only ends, and waits for it.
//
//go:norace
//go:nosplit
func spawn(program uintptr) syscall.Errno {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		if program != 0 {
			syscall.RawSyscall(unix.SYS_EXECVE, program, 0, 0)
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, 126, 0, 0)
		}
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	var status int32
	for {
		_, _, errno = syscall.RawSyscall6(unix.SYS_WAIT4, pid, uintptr(unsafe.Pointer(&status)), 0, 0, 0, 0)
		if errno != syscall.EINTR {
			break
		}
	}
	if errno == 0 && status != 0 {
		errno = syscall.ECHILD
	}
	return errno
}

// wait returns the exit status of a child, 128 and the signal if it was killed.
func wait(pid int) int {
	var ws syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &ws, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			made.Must("wait4", made.Ret(err))
		}
		if ws.Signaled() {
			return 128 + int(ws.Signal())
		}
		return ws.ExitStatus()
	}
}

// done waits and stops the workload unless the child did all of its script.
func done(what string, pid int) {
	if s := wait(pid); s != 0 {
		made.Must(what, -int64(s))
	}
}
