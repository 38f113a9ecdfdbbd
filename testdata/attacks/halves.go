//go:build linux

package main

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/testdata/workload/uring"
)

func init() {
	add(attack{name: "a command with more in the upper half", class: "B3",
		what: "creates a file system by fsconfig and renames by renameat2, with more than 32 bits in arguments of which the kernel takes 32",
		run: func(w *world) error {
			fd := raw(unix.SYS_FSOPEN, addr(text("tmpfs")), 0)
			if fd < 0 {
				return notHere("fsopen: " + unix.Errno(-fd).Error())
			}
			w.say("create", raw(unix.SYS_FSCONFIG, uintptr(fd), unix.FSCONFIG_CMD_CREATE|1<<32, 0, 0, 0))
			if err := filesOf("x"); err != nil {
				return err
			}
			w.say("rename", raw(unix.SYS_RENAMEAT2, cwd, addr(text("x")), cwd, addr(text("y")), 1<<32))
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("create") != "0" || e.said("rename") != "0" {
				return failed("create %s, rename %s", e.said("create"), e.said("rename"))
			}
			created, renamed := 0, 0
			for i := range e.own {
				switch l := &e.own[i]; {
				case l.Type == schemas.EventFsconfig && l.text() == "tmpfs":
					created++
				case l.Type == schemas.EventRenameTo && l.Flags != nil && *l.Flags != 0:
					return lie("false: %s, flags %d", e.show(l), *l.Flags)
				case l.Type == schemas.EventRenameTo:
					renamed++
				}
			}
			if created != 1 || renamed != 1 {
				return lie("absent: %d created, %d renamed", created, renamed)
			}
			return exact()
		}})

	add(attack{name: "ring exchanges two files", class: "A14", user: true,
		what: "a request renames with RENAME_EXCHANGE, and one with RENAME_NOREPLACE, which fails",
		run: func(w *world) error {
			u, err := newRing(4, 0)
			if err == nil {
				err = filesOf("x", "y")
			}
			if err != nil {
				return err
			}
			x, y := text("x"), text("y")
			for name, flags := range map[string]uint32{"exchange": unix.RENAME_EXCHANGE, "noreplace": unix.RENAME_NOREPLACE} {
				w.say(name, u.Do(uring.Entry{Op: uring.Renameat, FD: cwdFD, Addr: uint64(addr(x)), Len: 0xffffff9c, Off: uint64(addr(y)), OpFlags: flags}))
			}
			runtime.KeepAlive(x)
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("exchange") != "0" || e.said("noreplace") != "-17" {
				return failed("exchange %s, noreplace %s", e.said("exchange"), e.said("noreplace"))
			}
			n := 0
			for i := range e.own {
				l := &e.own[i]
				if l.Type != schemas.EventRenameTo {
					continue
				}
				want := uint64(unix.RENAME_EXCHANGE)
				if l.Status != schemas.StatusSuccess {
					want = unix.RENAME_NOREPLACE
				}
				if n++; l.Flags == nil || *l.Flags != want {
					return lie("false: %s without its flags", e.show(l))
				}
			}
			if n != 2 {
				return lie("absent: %d", 2-n)
			}
			return exact()
		}})

	add(attack{name: "MPTCP lets its peer go", class: "B4", user: true,
		what: "connects a socket of MPTCP, and then to no family, which lets the peer go",
		run: func(w *world) error {
			const mptcp = 262
			server, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, mptcp)
			if err != nil {
				return notHere("MPTCP: " + err.Error())
			}
			if err := errors.Join(unix.Bind(server, &unix.SockaddrInet4{Addr: loopback}), unix.Listen(server, 1)); err != nil {
				return err
			}
			at, err := unix.Getsockname(server)
			if err == nil {
				err = unix.Connect(fd, at)
			}
			if err != nil {
				return err
			}
			none := [16]byte{}
			if _, _, no := syscall.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none)), 16); no != 0 {
				return no
			}
			_, err = unix.Getpeername(fd)
			w.say("peer", err)
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("peer") != unix.ENOTCONN.Error() {
				return failed("getpeername: %s", e.said("peer"))
			}
			n := 0
			for i := range e.own {
				l := &e.own[i]
				if l.Type != schemas.EventConnect {
					continue
				}
				if n++; n == 2 && l.Value != nil {
					return lie("false: %s", e.show(l))
				}
			}
			if n != 2 {
				return lie("absent: %d", 2-n)
			}
			return exact()
		}})

	add(attack{name: "threads that set their ids beside failed opens", class: "A13", ordinary: true,
		what: "a thread sets the ids that it has all the time, while another one opens what does not exist",
		run: func(w *world) error {
			end := make(chan bool)
			go func() {
				runtime.LockOSThread()
				for {
					select {
					case <-end:
						return
					default:
						raw(unix.SYS_SETRESUID, ^uintptr(0), ^uintptr(0), ^uintptr(0))
					}
				}
			}()
			none := text("none")
			for range 10 * manyTimes {
				raw(unix.SYS_OPENAT, cwd, addr(none), unix.O_RDONLY)
			}
			close(end)
			return nil
		},
		judge: func(e *evidence) verdict {
			n := 0
			for _, l := range opens(e) {
				if l.text() == e.path("none") && l.marked() == "" {
					n++
				}
			}
			if n < 10*manyTimes {
				return declared("%d of %d", 10*manyTimes-n, 10*manyTimes)
			}
			return exact()
		}})
}
