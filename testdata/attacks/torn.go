//go:build linux

package main

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/uring"
)

// opensMade is how often opensBeside opens the file f of the working directory.
const opensMade = 10 * manyTimes

// opensBeside opens it while another process does something else, such as moving the directory.
func opensBeside(other func()) error {
	pid, err := child(other)
	if err != nil {
		return err
	}
	defer reap(pid)
	f := text("f")
	for range opensMade {
		fd := raw(unix.SYS_OPENAT, cwd, addr(f), unix.O_RDONLY)
		raw(unix.SYS_CLOSE, uintptr(fd))
	}
	return nil
}

func init() {
	add(attack{name: "a directory renamed while its path is read", class: "B7", user: true, chance: true,
		what: "opens a file in its working directory, which another process renames from x/aaaaaaaa to y/bbbbbbbb and back all the time",
		run: func(w *world) error {
			for _, d := range []string{"x", "y", "x/aaaaaaaa"} {
				if err := unix.Mkdir(d, 0o700); err != nil {
					return err
				}
			}
			if err := os.WriteFile("x/aaaaaaaa/f", nil, 0o600); err != nil {
				return err
			}
			a, b := text(w.path("x/aaaaaaaa")), text(w.path("y/bbbbbbbb"))
			if err := unix.Chdir("x/aaaaaaaa"); err != nil {
				return err
			}
			return opensBeside(func() {
				for range 400 * manyTimes {
					raw(unix.SYS_RENAMEAT2, cwd, addr(a), cwd, addr(b), 0)
					raw(unix.SYS_RENAMEAT2, cwd, addr(b), cwd, addr(a), 0)
				}
			})
		},
		judge: func(e *evidence) verdict {
			return each(opens(e), opensMade, e, e.path("x/aaaaaaaa/f"), e.path("y/bbbbbbbb/f"))
		}})

	add(attack{name: "a worker of what a thread gave up", class: "A7", user: true,
		what: "a worker of a ring whose completions wait for the thread; that takes a working directory of its own (unshare), and the worker makes a directory in the old one",
		run: func(w *world) error {
			if err := places(w); err != nil {
				return err
			}
			const singleIssuer, deferTaskrun = 1 << 12, 1 << 13
			u, err := newRing(8, singleIssuer|deferTaskrun)
			if err != nil {
				return err
			}
			if err := unix.Unshare(unix.CLONE_FS); err != nil { // Go's threads share it: this one is alone from here on
				return err
			}
			if err := unix.Chdir("d1"); err != nil {
				return err
			}
			u.Do(uring.Entry{Op: uring.Nop, Flags: uring.Async})
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return err
			}
			if err := unix.Chdir(w.path("d2")); err != nil {
				return err
			}
			name := text("made")
			w.say("cqe", u.Do(uring.Entry{Op: uring.Mkdirat, FD: cwdFD, Addr: uint64(uintptr(unsafe.Pointer(name))), Len: 0o700, Flags: uring.Async}))
			runtime.KeepAlive(name)
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("cqe") != "0" {
				return failed("the completion says %s", e.said("cqe"))
			}
			return placed(e)
		}})

	add(attack{name: "fanotify brings a descriptor to write", class: "A7", alone: true,
		what: "root asks fanotify for descriptors to write, and opens core_pattern only for reading",
		run: func(w *world) error {
			fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC, unix.O_RDWR)
			if err != nil {
				return notHere("fanotify: " + err.Error())
			}
			if err := unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN, unix.AT_FDCWD, "/proc/sys/kernel/core_pattern"); err != nil {
				return notHere("fanotify: " + err.Error())
			}
			f, err := os.Open("/proc/sys/kernel/core_pattern")
			if err != nil {
				return err
			}
			defer f.Close()
			n, err := unix.Read(fd, make([]byte, 256))
			w.say("event", n)
			return err
		},
		judge: func(e *evidence) verdict {
			if e.passes {
				return lie("the record passes")
			}
			return declared("%s", e.cause())
		}})
}
