//go:build linux

package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

func init() {
	add(attack{name: "upper bits of the call number", class: "A1", user: true,
		what: "makes, opens and removes files with upper bits set in the register of the call's number, which the kernel ignores",
		run: func(w *world) error {
			if err := os.WriteFile(w.path("gone"), nil, 0o600); err != nil {
				return err
			}
			made, dir, gone := text("made"), text("dir"), text("gone")
			const upper = 1 << 32
			for _, r := range []int64{
				raw(upper|unix.SYS_OPENAT, cwd, addr(made), unix.O_CREAT|unix.O_WRONLY, 0o600),
				raw(upper<<20|unix.SYS_MKDIRAT, cwd, addr(dir), 0o700),
				raw(upper<<31|unix.SYS_UNLINKAT, cwd, addr(gone), 0),
			} {
				if r < 0 {
					return unix.Errno(-r)
				}
			}
			return nil
		},
		judge: func(e *evidence) verdict {
			if !e.exists("made") || !e.exists("dir") || e.exists("gone") {
				return failed("the file system says that it was not done")
			}
			facts := done(schemas.EventOpenat, "gone", "made") // the first is os.WriteFile's
			facts = append(facts, done(schemas.EventMkdir, "dir")...)
			return e.compare(append(facts, done(schemas.EventUnlink, "gone")...))
		}})

	add(attack{name: "seccomp traps", class: "A3", user: true,
		what: "unlink and openat are trapped by a seccomp filter of the program's own (SECCOMP_RET_TRAP): they do not run",
		run: func(w *world) error {
			if err := os.WriteFile(w.path("stays"), nil, 0o600); err != nil {
				return err
			}
			if err := survive(unix.SIGSYS, 0); err != nil {
				return err
			}
			if _, err := filter(seccompTrap, 0, unix.SYS_UNLINKAT, unix.SYS_OPENAT); err != nil {
				return err
			}
			stays, never := text("stays"), text("never")
			raw(unix.SYS_UNLINKAT, cwd, addr(stays), 0)
			raw(unix.SYS_OPENAT, cwd, addr(never), unix.O_CREAT|unix.O_RDWR, 0o600)
			return nil
		},
		judge: func(e *evidence) verdict {
			if !e.exists("stays") || e.exists("never") {
				return failed("the file system says that it was done")
			}
			facts := done(schemas.EventOpenat, "stays")
			facts = append(facts, answered(schemas.EventUnlink, "stays")...)
			return e.compare(append(facts, answered(schemas.EventOpenat, "never")...))
		}})

	add(attack{name: "seccomp answers success", class: "A4", user: true,
		what: "a seccomp filter answers unlinkat and mkdirat with 0 (SECCOMP_RET_ERRNO without an error): they do not run",
		run: func(w *world) error {
			if err := os.WriteFile(w.path("stays"), nil, 0o600); err != nil {
				return err
			}
			if _, err := filter(seccompErrno, 0, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT); err != nil {
				return err
			}
			stays, never := text("stays"), text("never")
			if raw(unix.SYS_UNLINKAT, cwd, addr(stays), 0) != 0 || raw(unix.SYS_MKDIRAT, cwd, addr(never), 0o700) != 0 {
				return errors.New("the filter did not answer")
			}
			return nil
		},
		judge: func(e *evidence) verdict {
			if !e.exists("stays") || e.exists("never") {
				return failed("the file system says that it was done")
			}
			facts := append(answered(schemas.EventUnlink, "stays"), answered(schemas.EventMkdir, "never")...)
			return e.compare(facts)
		}})

	add(attack{name: "rename of the own directory", class: "A8", user: true, ordinary: true,
		what: "mkdir d sub; cd d; mv ../d ../sub/",
		run: func(w *world) error {
			return errors.Join(unix.Mkdir("d", 0o700), unix.Mkdir("sub", 0o700), unix.Chdir("d"), unix.Rename("../d", "../sub/d"))
		},
		judge: func(e *evidence) verdict {
			if !e.exists("sub/d") || e.exists("d") {
				return failed("it was not renamed")
			}
			return e.compare(append(done(schemas.EventRenameFrom, "d"), done(schemas.EventRenameTo, "sub/d")...))
		}})
}
