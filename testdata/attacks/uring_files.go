//go:build linux

package main

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/testdata/workload/uring"
)

func init() {
	add(attack{name: "ring sets attributes", class: "A14", user: true,
		what: "requests write extended attributes of a path, of a descriptor, of a file that does not exist, and one without a readable name",
		run: func(w *world) error {
			u, err := newRing(4, 0)
			if err == nil {
				err = filesOf("file")
			}
			if err != nil {
				return err
			}
			fd, err := unix.Open("file", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			file, none, one, two, value := text("file"), text("none"), text("user.one"), text("user.two"), text("x")
			set := func(op uint8, fd int, name *byte, path *byte) int64 {
				e := uring.Entry{Op: op, FD: int32(fd), Off: uint64(addr(value)), Addr: uint64(addr(name)), Len: 1}
				if path != nil {
					e.Addr3 = uint64(addr(path))
				}
				return u.Do(e)
			}
			switch r := set(uring.Setxattr, 0, one, file); r {
			case 0:
			case -int64(unix.EINVAL), -int64(unix.EOPNOTSUPP):
				return notHere("no attributes by a ring, or none in this file system")
			default:
				return unix.Errno(-r)
			}
			w.say("path", set(uring.Setxattr, 0, two, none))
			w.say("descriptor", set(uring.Fsetxattr, fd, two, nil))
			e := uring.Entry{Op: uring.Setxattr, Addr: 1, Addr3: uint64(addr(file)), Len: 1}
			w.say("name", u.Do(e))
			buf := make([]byte, 64)
			n, err := unix.Listxattr("file", buf)
			w.say("attributes", string(buf[:max(n, 0)]))
			runtime.KeepAlive(value)
			return err
		},
		judge: func(e *evidence) verdict {
			if e.said("descriptor") != "0" || e.said("path") == "0" || e.said("name") == "0" {
				return failed("descriptor %s, path %s, name %s", e.said("descriptor"), e.said("path"), e.said("name"))
			}
			names := 0
			for _, l := range e.own {
				if l.Type == schemas.EventXattrName && (l.Value == nil || *l.Value == "user.one" || *l.Value == "user.two") {
					names++
				}
			}
			if names < 3 {
				return lie("absent: %d of 3 names of attributes", 3-names)
			}
			return e.compare([]fact{{kind: schemas.EventSetxattr, value: "file"}, {kind: schemas.EventSetxattr, value: "file"},
				{kind: schemas.EventSetxattr, value: "none", failed: true}, {kind: schemas.EventSetxattr, value: "file", failed: true}})
		}})

	add(attack{name: "a ring changes the descriptor", class: "A10", user: true, chance: true,
		what: "makes directories in a descriptor while another thread's ring closes it and opens another directory, which gets its number",
		run: func(w *world) error {
			u, err := newRing(4, 0)
			if err == nil {
				err = places(w)
			}
			if err != nil {
				return err
			}
			names := []string{"d1", "d2"}
			at, err := unix.Open("d1", unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			stop := meanwhile(func(i int) {
				u.Do(uring.Entry{Op: uring.Close, FD: int32(at)})
				u.Do(openEntry(names[(i+1)%2], unix.O_RDONLY|unix.O_DIRECTORY, 1))
			})
			defer stop()
			manyDirs(func(n *byte) { raw(unix.SYS_MKDIRAT, uintptr(at), addr(n), 0o700) })
			return nil
		},
		judge: func(e *evidence) verdict {
			var own []told
			for _, l := range e.own { // the descriptor was closed just then
				if l.Type != schemas.EventMkdir || l.Status != schemas.StatusError {
					own = append(own, l)
				}
			}
			e.own = own
			return placed(e)
		}})

	add(attack{name: "more completions than a ring has room for", class: "A6", user: true, alone: true, chance: true,
		what: "requests make folders, and nobody takes their completions: the kernel keeps those that have no room",
		run: func(w *world) error {
			u, err := newRing(4, 0)
			if err != nil {
				return err
			}
			for i := range 32 {
				u.Submit(uring.Entry{Op: uring.Mkdirat, FD: cwdFD, Addr: uint64(addr(text(fmt.Sprint("n", i)))), Len: 0o700})
			}
			for range 32 {
				u.Wait()
			}
			return nil
		},
		judge: func(e *evidence) verdict {
			var names []string
			for i := range 32 {
				name := fmt.Sprint("n", i)
				if !e.exists(name) {
					return failed("%s is not there", name)
				}
				names = append(names, name)
			}
			v := e.compare(done(schemas.EventMkdir, names...))
			if cause := e.cause(); v.result == isLie && cause != "" {
				return declared("%s", cause)
			}
			return v
		}})
}
