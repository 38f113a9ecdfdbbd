//go:build linux

package main

import (
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/uring"
)

func init() {
	add(attack{name: "ring opens where nobody can look", class: "A7", alone: true,
		what: "root opens core_pattern for writing, by a link in /tmp, as a direct descriptor of a ring: nothing has a descriptor that tells what it is",
		run: func(w *world) error {
			u, err := newRing(4, 0)
			if err != nil {
				return err
			}
			const registerFiles = 2
			table := [2]int32{-1, -1}
			if r := raw(unix.SYS_IO_URING_REGISTER, uintptr(u.FD), registerFiles, addr(&table), 2); r < 0 {
				return notHere("no direct descriptors")
			}
			if err := unix.Symlink("/proc/sys/kernel/core_pattern", "innocent"); err != nil {
				return err
			}
			name := text("innocent")
			w.say("cqe", u.Do(uring.Entry{Op: uring.Openat, FD: cwdFD, Addr: uint64(addr(name)), OpFlags: unix.O_WRONLY, Slot: 1}))
			runtime.KeepAlive(name)
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("cqe") != "0" {
				return failed("the completion says %s", e.said("cqe"))
			}
			if e.passes {
				return lie("the record passes")
			}
			return declared("%s", e.cause())
		}})
}
