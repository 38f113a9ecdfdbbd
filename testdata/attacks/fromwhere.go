//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// sentFromElsewhere sends to a relative address of a socket that is full, by a process that shares the working directory with this one.
func sentFromElsewhere(w *world) error {
	if err := places(w); err != nil {
		return err
	}
	var there [2]int
	for i := range there {
		there[i] = made(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err := unix.Bind(there[i], &unix.SockaddrUnix{Name: fmt.Sprintf("d%d/socket", i+1)}); err != nil {
			return err
		}
	}
	full := made(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	if err := errors.Join(unix.Connect(full, &unix.SockaddrUnix{Name: "d1/socket"}), unix.Chdir("d1")); err != nil {
		return err
	}
	for {
		if _, err := unix.Write(full, []byte("x")); err != nil {
			break
		}
	}
	fd := made(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	name, sent := []byte("\x00\x00socket\x00"), []byte("sent")
	binary.NativeEndian.PutUint16(name, unix.AF_UNIX)
	pid, err := sharing(unix.CLONE_FS, func() {
		raw(unix.SYS_SENDTO, uintptr(fd), addr(&sent[0]), uintptr(len(sent)), 0, addr(&name[0]), uintptr(len(name)))
		for {
			raw(unix.SYS_EXIT_GROUP)
		}
	})
	if err != nil {
		return err
	}
	defer reap(pid)
	if err := errors.Join(childAsleep(pid), unix.Chdir(w.path("d2"))); err != nil {
		return err
	}
	buf := make([]byte, 8)
	for began := time.Now(); time.Since(began) < patience/10; time.Sleep(time.Millisecond) {
		for i, fd := range there {
			if n, _, _ := unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT); n == len(sent) {
				w.say("received", fmt.Sprintf("d%d", i+1))
				return nil
			}
		}
	}
	return errors.New("nothing was received")
}

// deep is more than 2048 bytes of path below the working directory, where it goes.
func deep() (levels int, err error) {
	for range 9 {
		name := strings.Repeat("d", 240)
		if err := errors.Join(unix.Mkdir(name, 0o700), unix.Chdir(name)); err != nil {
			return 0, err
		}
		levels++
	}
	return levels, nil
}

func init() {
	add(attack{name: "a full socket sent to from another place", class: "A10", user: true, run: sentFromElsewhere,
		what: "sendto to a relative address of a unix socket waits, for that is full; meanwhile a process that shares only the working directory (CLONE_FS) changes it",
		judge: func(e *evidence) verdict {
			return e.compare(done(schemas.EventSendto, "unix:"+e.path(e.said("received"))+"/socket"))
		}})
	add(attack{name: "a rename of what the program is in", class: "B7", user: true,
		what: "renames a directory that it is in, more than 2048 bytes of path below, by relative names: where they start is another place when the call ends",
		run: func(w *world) error {
			if err := errors.Join(unix.Mkdir("A", 0o700), unix.Mkdir("C", 0o700), unix.Chdir("A")); err != nil {
				return err
			}
			levels, err := deep()
			if err != nil {
				return err
			}
			up := strings.Repeat("../", levels+1)
			from, to := text(up+"A"), text(up+"C/B")
			return alone(func() { raw(unix.SYS_RENAMEAT2, cwd, addr(from), cwd, addr(to), 0) })
		},
		judge: func(e *evidence) verdict {
			if !e.exists("C/B") {
				return failed("it was not renamed")
			}
			return e.compare(append(done(schemas.EventRenameFrom, "A"), done(schemas.EventRenameTo, "C/B")...))
		}})
	add(attack{name: "a rename in a deep directory", class: "B7", user: true, alone: true, ordinary: true,
		what: "renames a file in its working directory, which has more than 2048 bytes of path, by a program with threads and by one without",
		run: func(w *world) error {
			if _, err := deep(); err != nil {
				return err
			}
			b, c := text("b"), text("c")
			if err := os.WriteFile("a", nil, 0o600); err != nil {
				return err
			}
			return errors.Join(unix.Rename("a", "b"), alone(func() { raw(unix.SYS_RENAMEAT2, cwd, addr(b), cwd, addr(c), 0) }), unix.Access("c", unix.F_OK))
		},
		judge: func(e *evidence) verdict {
			at := strings.Repeat(strings.Repeat("d", 240)+"/", 9)
			return undoubted(e.compare(append(done(schemas.EventRenameFrom, at+"a", at+"b"), done(schemas.EventRenameTo, at+"b", at+"c")...)))
		}})
}
