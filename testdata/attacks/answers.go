//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// Calls that something answers before the kernel does them.
func init() {
	for _, way := range []struct {
		name   string
		action uint32
	}{{"process", seccompKill}, {"thread", 0}} {
		add(attack{name: "seccomp kills the " + way.name, class: "A3", user: true,
			what: "a seccomp filter kills the " + way.name + " at unlinkat: it does not run",
			run: func(w *world) error {
				if err := os.WriteFile(w.path("stays"), nil, 0o600); err != nil {
					return err
				}
				back := make(chan error)
				go func() {
					runtime.LockOSThread()
					stays := text("stays")
					_, err := filter(way.action, 0, unix.SYS_UNLINKAT)
					if err == nil {
						raw(unix.SYS_UNLINKAT, cwd, addr(stays), 0)
						err = errors.New("the filter did not kill")
					}
					back <- err
				}()
				select {
				case err := <-back:
					return err
				case <-time.After(300 * time.Millisecond): // the thread is dead
					return nil
				}
			},
			judge: func(e *evidence) verdict {
				if !e.exists("stays") || !strings.HasPrefix(e.end, "signal") && way.action != 0 {
					return failed("the file system says that it was done, or it was not killed: %s", e.end)
				}
				return e.compare(answered(schemas.EventUnlink, "stays"))
			}})
	}

	add(attack{name: "seccomp traps an exec", class: "A3", user: true,
		what: "execve is trapped by a seccomp filter: the program is not run, and nothing failed",
		run: func(w *world) error {
			if err := survive(unix.SIGSYS, 0); err != nil {
				return err
			}
			if _, err := filter(seccompTrap, 0, unix.SYS_EXECVE); err != nil {
				return err
			}
			path := text("/bin/true")
			argv := []*byte{path, nil}
			raw(unix.SYS_EXECVE, addr(path), addr(&argv[0]), addr(&argv[1]))
			return nil
		},
		judge: func(e *evidence) verdict {
			return e.compare(answered(schemas.EventExecFailed, "/bin/true"), schemas.EventExec)
		}})

	add(attack{name: "a notifier answers", class: "A4", user: true,
		what: "a seccomp user notification is answered with 0 for mkdirat, unlinkat and connect: they do not run",
		run: func(w *world) error {
			return notified(w, 0, func() {
				stays, never := text("stays"), text("never")
				raw(unix.SYS_UNLINKAT, cwd, addr(stays), 0)
				raw(unix.SYS_MKDIRAT, cwd, addr(never), 0o700)
				to := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: 0x0900, Addr: [4]byte{127, 0, 0, 1}}
				fd := raw(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0)
				w.say("connect", raw(unix.SYS_CONNECT, uintptr(fd), addr(&to), unix.SizeofSockaddrInet4))
				var peer unix.RawSockaddrAny
				size := uint32(unix.SizeofSockaddrAny)
				w.say("peer", raw(unix.SYS_GETPEERNAME, uintptr(fd), addr(&peer), addr(&size)))
			})
		},
		judge: func(e *evidence) verdict {
			if !e.exists("stays") || e.exists("never") || e.said("connect") != "0" || e.said("peer") != fmt.Sprint(-int(unix.ENOTCONN)) {
				return failed("it was done: connect %s, getpeername %s", e.said("connect"), e.said("peer"))
			}
			facts := append(answered(schemas.EventUnlink, "stays"), answered(schemas.EventMkdir, "never")...)
			return e.compare(append(facts, answered(schemas.EventConnect, "127.0.0.1:9")...))
		}})

	add(attack{name: "a notifier lets go on", class: "A4", user: true, ordinary: true,
		what: "a seccomp user notification lets the calls run (SECCOMP_USER_NOTIF_FLAG_CONTINUE), as container managers do",
		run: func(w *world) error {
			const goOn = 1
			return notified(w, goOn, func() {
				stays, never := text("stays"), text("never")
				raw(unix.SYS_UNLINKAT, cwd, addr(stays), 0)
				raw(unix.SYS_MKDIRAT, cwd, addr(never), 0o700)
			})
		},
		judge: func(e *evidence) verdict {
			if e.exists("stays") || !e.exists("never") {
				return failed("it was not done")
			}
			return e.compare(append(done(schemas.EventUnlink, "stays"), done(schemas.EventMkdir, "never")...))
		}})
}

// notified makes calls under a filter whose notifications another thread answers.
func notified(w *world, flags uint32, calls func()) error {
	if err := os.WriteFile(w.path("stays"), nil, 0o600); err != nil {
		return err
	}
	const newListener, recv, send = 1 << 3, 0xc0502100, 0xc0182101
	ready := make(chan int)
	go func() {
		listener := <-ready
		for {
			var n struct {
				id         uint64
				pid, flags uint32
				data       [64]byte
			}
			if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), recv, uintptr(unsafe.Pointer(&n))); e != 0 {
				return
			}
			answer := struct {
				id           uint64
				val          int64
				error, flags uint32
			}{id: n.id, flags: flags}
			unix.Syscall(unix.SYS_IOCTL, uintptr(listener), send, uintptr(unsafe.Pointer(&answer)))
		}
	}()
	listener, err := filter(seccompNotify, newListener, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_CONNECT)
	if err != nil {
		return err
	}
	ready <- listener
	calls()
	return nil
}
