//go:build linux

package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Actions of a seccomp filter.
const (
	seccompKill   = 0x80000000 // the process
	seccompTrap   = 0x00030000
	seccompErrno  = 0x00050000
	seccompNotify = 0x7fc00000
	seccompTrace  = 0x7ff00000
	seccompAllow  = 0x7fff0000
)

// filter puts this thread under a seccomp filter that answers the calls of these numbers with
// the action. flags are those of seccomp(2); with SECCOMP_FILTER_FLAG_NEW_LISTENER it returns the listener.
func filter(action uint32, flags uintptr, calls ...uintptr) (listener int, err error) {
	prog := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // the number
	for i, nr := range calls {
		prog = append(prog, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(calls) - i), K: uint32(nr)})
	}
	prog = append(prog, unix.SockFilter{Code: unix.BPF_RET, K: seccompAllow}, unix.SockFilter{Code: unix.BPF_RET, K: action})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("no_new_privs: %w", err)
	}
	p := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	const setModeFilter = 1
	r, _, e := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, flags, uintptr(unsafe.Pointer(&p)))
	if e != 0 {
		return 0, fmt.Errorf("seccomp: %w", e)
	}
	return int(r), nil
}

// raw is one system call on this thread, with the runtime kept out of it: a result below 0 is an error.
func raw(nr uintptr, args ...uintptr) int64 {
	var a [6]uintptr
	copy(a[:], args)
	r, _, e := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if e != 0 {
		return -int64(e)
	}
	return int64(r)
}

// text is a C string for raw. The caller keeps it alive: keep it in a variable.
func text(s string) *byte {
	b, _ := unix.BytePtrFromString(s)
	return b
}

func addr[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// cwd is AT_FDCWD as an argument of raw.
const cwd = ^uintptr(99)
