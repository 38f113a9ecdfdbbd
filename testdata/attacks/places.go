//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// Names that are another thing at the end of the call than at its beginning.
func init() {
	add(attack{name: "refused open below a root of its own", class: "B8", user: true,
		what: "openat2 with RESOLVE_IN_ROOT of names with .. and / that do not exist: they mean names in the directory",
		run: func(w *world) error {
			if err := unix.Mkdir("d", 0o700); err != nil {
				return err
			}
			fd, err := unix.Open("d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			for _, name := range []string{"../none", "/none", "/../../none"} {
				_, err := unix.Openat2(fd, name, &unix.OpenHow{Flags: unix.O_RDONLY, Resolve: unix.RESOLVE_IN_ROOT})
				if err != unix.ENOENT {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			return nil
		},
		judge: func(e *evidence) verdict {
			facts := done(schemas.EventOpenat, "d")
			for range 3 {
				facts = append(facts, fact{kind: schemas.EventOpenat, value: "d/none", failed: true})
			}
			return e.compare(facts)
		}})

	add(attack{name: "exchange of two files", class: "B9", user: true, ordinary: true,
		what: "renameat2 with RENAME_EXCHANGE",
		run: func(w *world) error {
			return errors.Join(os.WriteFile("x", []byte("x"), 0o600), os.WriteFile("y", []byte("y"), 0o600),
				unix.Renameat2(unix.AT_FDCWD, "x", unix.AT_FDCWD, "y", unix.RENAME_EXCHANGE))
		},
		judge: func(e *evidence) verdict {
			if b, _ := os.ReadFile(e.path("x")); string(b) != "y" {
				return failed("it was not exchanged")
			}
			for i := range e.own {
				l := &e.own[i]
				if l.Type == schemas.EventRenameFrom && (l.Flags == nil || *l.Flags != unix.RENAME_EXCHANGE) {
					return lie("false: a plain rename")
				}
			}
			return e.compare(append(done(schemas.EventRenameFrom, "x"), done(schemas.EventRenameTo, "y")...))
		}})

	add(attack{name: "truncate of the file with its own name", class: "B9", user: true,
		what: "the path of truncate is read from a mapping of the file that is truncated to nothing",
		run: func(w *world) error {
			name := w.path("file")
			if err := os.WriteFile(name, append([]byte(name), 0), 0o600); err != nil {
				return err
			}
			f, err := os.OpenFile(name, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			page, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
			if err != nil {
				return err
			}
			_ = page[0]
			w.say("ret", raw(unix.SYS_TRUNCATE, addr(&page[0]), 0))
			return nil
		},
		judge: func(e *evidence) verdict {
			if st, err := os.Stat(e.path("file")); err != nil || st.Size() != 0 {
				return failed("it was not cut")
			}
			return e.compare(done(schemas.EventTruncate, "file"))
		}})

	add(attack{name: "a text that is not in memory yet", class: "B7", user: true, ordinary: true,
		what: "the path of mkdir is in a mapped file whose page nobody has touched",
		run: func(w *world) error {
			if err := os.WriteFile("text", append([]byte(w.path("made")), 0), 0o600); err != nil {
				return err
			}
			fd, err := unix.Open("text", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			page, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE)
			if err != nil {
				return err
			}
			unix.Madvise(page, unix.MADV_DONTNEED)
			if r := raw(unix.SYS_MKDIRAT, cwd, addr(&page[0]), 0o700); r < 0 {
				return unix.Errno(-r)
			}
			return nil
		},
		judge: func(e *evidence) verdict {
			if !e.exists("made") {
				return failed("it was not made")
			}
			return e.compare(done(schemas.EventMkdir, "made"))
		}})

	add(attack{name: "FIFO whose directory is renamed", class: "B10", user: true,
		what: "an open of a FIFO waits for the other end; meanwhile its directory is renamed",
		run: func(w *world) error {
			err := errors.Join(unix.Mkdir("d1", 0o700), unix.Mkfifo("d1/fifo", 0o600))
			if err != nil {
				return err
			}
			opened := make(chan error)
			var caller waiter
			go func() {
				runtime.LockOSThread()
				caller.calls()
				_, err := unix.Open("d1/fifo", unix.O_WRONLY|unix.O_CLOEXEC, 0)
				opened <- err
			}()
			if err := caller.asleep(); err != nil {
				return err
			}
			if err := unix.Rename("d1", "d2"); err != nil {
				return err
			}
			if _, err := unix.Open("d2/fifo", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
				return err
			}
			return <-opened
		},
		judge: func(e *evidence) verdict {
			// the path of an opened file is the one that it has when the call ends
			return e.compare(done(schemas.EventOpenat, "d2/fifo", "d2/fifo"))
		}})

	add(attack{name: "a call that signals interrupt", class: "B10", user: true, ordinary: true,
		what: "an open of a FIFO waits, is interrupted by eight signals and starts over each time (SA_RESTART)",
		run: func(w *world) error {
			const restart = 0x10000000
			if err := errors.Join(unix.Mkfifo("fifo", 0o600), survive(unix.SIGUSR2, restart)); err != nil {
				return err
			}
			tids := make(chan int)
			opened := make(chan int64)
			go func() {
				runtime.LockOSThread()
				name := text("fifo")
				tids <- unix.Gettid()
				opened <- raw(unix.SYS_OPENAT, cwd, addr(name), unix.O_WRONLY)
			}()
			tid := <-tids
			for range 8 {
				time.Sleep(50 * time.Millisecond)
				unix.Tgkill(os.Getpid(), tid, unix.SIGUSR2)
			}
			time.Sleep(50 * time.Millisecond)
			name := text("fifo")
			raw(unix.SYS_OPENAT, cwd, addr(name), unix.O_RDONLY|unix.O_NONBLOCK)
			w.say("ret", <-opened)
			return nil
		},
		judge: func(e *evidence) verdict {
			if strings.HasPrefix(e.said("ret"), "-") {
				return failed("the open failed: %s", e.said("ret"))
			}
			return e.compare(done(schemas.EventOpenat, "fifo", "fifo"))
		}})

	add(attack{name: "script by a descriptor", class: "B10", user: true,
		what: "execveat of a script by a directory's descriptor and a name: its interpreter gets a name in /dev/fd",
		run: func(w *world) error {
			if err := os.WriteFile("script", []byte("#!/bin/sh\n:\n"), 0o700); err != nil {
				return err
			}
			dir, err := unix.Open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			name := text("script")
			argv := []*byte{name, nil}
			return started(func() int64 {
				return raw(unix.SYS_EXECVEAT, uintptr(dir), addr(name), addr(&argv[0]), addr(&argv[1]), 0)
			})
		},
		judge: func(e *evidence) verdict { return e.compare(done(schemas.EventScript, "script")) }})

	add(attack{name: "a check that is no exec", class: "B10", user: true,
		what: "execveat with AT_EXECVE_CHECK: the kernel says whether a file could be executed, and runs nothing",
		run: func(w *world) error {
			if err := os.WriteFile("tool", []byte("#!/bin/sh\n:\n"), 0o700); err != nil {
				return err
			}
			name := text(w.path("tool"))
			argv := []*byte{name, nil}
			const check = 0x10000
			switch r := raw(unix.SYS_EXECVEAT, cwd, addr(name), addr(&argv[0]), addr(&argv[1]), check); r {
			case 0:
				return nil
			case -int64(unix.EINVAL):
				return notHere("no AT_EXECVE_CHECK, Linux 6.14")
			default:
				return unix.Errno(-r)
			}
		},
		judge: func(e *evidence) verdict {
			return e.compare(nil, schemas.EventExec, schemas.EventScript, schemas.EventExecFailed)
		}})
}

// started runs f, which is to start a program, in a child process, and waits. It fails if no program was started.
func started(f func() int64) error {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	result := make([]byte, 1)
	pid, err := child(func() { // what starts a program does not return
		result[0] = byte(-f())
		raw(unix.SYS_WRITE, uintptr(p[1]), addr(&result[0]), 1)
	})
	if err != nil {
		return err
	}
	unix.Close(p[1])
	defer unix.Close(p[0])
	n, err := unix.Read(p[0], result)
	var status unix.WaitStatus
	if _, waited := unix.Wait4(pid, &status, 0, nil); err != nil || waited != nil {
		return errors.Join(err, waited)
	}
	switch {
	case n > 0:
		return fmt.Errorf("no program was started: %w", unix.Errno(result[0]))
	case status.Signaled():
		return fmt.Errorf("the child was ended: %v", status.Signal())
	}
	return nil
}
