//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/testdata/workload/uring"
)

const (
	cwdFD    = unix.AT_FDCWD
	atCwdLen = uint32(1<<32 + unix.AT_FDCWD) // where an entry has its second descriptor
)

// newRing makes a ring, and tells apart a kernel that has no such one.
func newRing(size, flags uint32) (*uring.Ring, error) {
	u, err := uring.With(size, flags)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return nil, notHere("a ring with these flags: " + err.Error())
	}
	return u, err
}

// completions tells the completions as user data and result, and gives the results.
func completions(w *world, u *uring.Ring) map[uint64]int64 {
	all := map[uint64]int64{}
	for r, ok := u.Result(); ok; r, ok = u.Result() {
		all[r.UserData] = r.Result
		w.say("cqe "+strconv.FormatUint(r.UserData, 10), r.Result)
	}
	return all
}

// nextFD is the descriptor that the next open gets.
func nextFD() int32 {
	fd, err := unix.FcntlInt(0, unix.F_DUPFD, 0)
	if err != nil {
		return -1
	}
	unix.Close(fd)
	return int32(fd)
}

func openEntry(name string, flags uint32, data uint64) uring.Entry {
	return uring.Entry{Op: uring.Openat, FD: cwdFD, Addr: uint64(addr(text(name))), OpFlags: flags, Len: 0o600, UserData: data}
}

func filesOf(names ...string) error {
	for _, n := range names {
		if err := os.WriteFile(n, []byte(n), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// bothOpened judges opens of secret and benign by completions 1 and 3.
func bothOpened(before ...string) func(*evidence) verdict {
	return func(e *evidence) verdict {
		if fd := e.said("cqe 1"); fd == "" || fd != e.said("cqe 3") || fd[0] == '-' {
			return failed("the completions have the descriptors %q and %q", fd, e.said("cqe 3"))
		}
		return e.compare(done(schemas.EventOpenat, append(before, "secret", "benign")...))
	}
}

// silent judges folders that were made without completions: of each there is a line, in their
// order, that says no outcome.
func (e *evidence) silent(names ...string) verdict {
	var found []string
	for _, l := range e.own {
		if l.Type != schemas.EventMkdir {
			continue
		}
		if l.Status != "" || l.Return != nil {
			return lie("an outcome of %s", l.text())
		}
		found = append(found, filepath.Base(l.text()))
	}
	if !slices.Equal(found, names) {
		return lie("lines of %v, not of %v", found, names)
	}
	return declared("no outcome in the lines")
}

func init() {
	// reuse opens secret, closes it, and opens benign, which gets the same descriptor.
	reuse := func(flags uint32, change func(e []uring.Entry)) func(w *world) error {
		return func(w *world) error {
			u, err := newRing(16, flags)
			if err == nil {
				err = filesOf("secret", "benign")
			}
			if err != nil {
				return err
			}
			entries := []uring.Entry{openEntry("secret", unix.O_RDONLY, 1), {Op: uring.Close, FD: nextFD(), UserData: 2}, openEntry("benign", unix.O_RDONLY, 3)}
			if change != nil {
				change(entries)
			}
			u.Queue(entries...)
			for len(completions(w, u)) == 0 {
				u.Enter(3)
			}
			return nil
		}
	}
	add(attack{name: "ring reuses a descriptor", class: "A5", user: true, run: reuse(0, nil), judge: bothOpened("secret", "benign"),
		what: "one submission opens a file, closes it and opens another, which gets the same descriptor"})
	add(attack{name: "deferred ring reuses a descriptor", class: "A5", user: true, run: reuse(uring.Deferred, nil), judge: bothOpened("secret", "benign"),
		what: "the same in a ring whose completions come when they are waited for"})
	add(attack{name: "ring thread reuses a descriptor", class: "A5", run: reuse(uring.Thread, nil), judge: bothOpened("secret", "benign"),
		what: "the same, submitted by the kernel's thread of the ring"})
	add(attack{name: "ring links reuse a descriptor", class: "A5", user: true, judge: bothOpened("secret", "benign"),
		what: "the same, each after a request that it is linked to: then they run one after the other before any completes",
		run: func(w *world) error {
			u, err := newRing(16, 0)
			if err == nil {
				err = filesOf("secret", "benign")
			}
			if err != nil {
				return err
			}
			head := uring.Entry{Op: uring.Nop, Flags: uring.Link}
			u.Queue(head, openEntry("secret", unix.O_RDONLY, 1), head, uring.Entry{Op: uring.Close, FD: nextFD(), UserData: 2}, head, openEntry("benign", unix.O_RDONLY, 3))
			u.Enter(6)
			completions(w, u)
			return nil
		}})
	add(attack{name: "ring completes late", class: "A5", user: true, judge: bothOpened("benign"),
		what: "a worker creates a file; before its completion is waited for, calls close it and open another, which gets the same descriptor",
		run: func(w *world) error {
			u, err := newRing(16, uring.Deferred)
			if err == nil {
				err = filesOf("benign")
			}
			if err != nil {
				return err
			}
			fd := int(nextFD())
			u.Submit(openEntry("secret", unix.O_CREAT|unix.O_RDONLY, 1))
			for unix.Close(fd) != nil {
			}
			again, err := unix.Open("benign", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			w.say("cqe 3", again)
			u.Enter(1)
			completions(w, u)
			return nil
		}})
	add(attack{name: "ring removes below a new directory", class: "A6", user: true,
		what: "linked requests close a directory, open another, which gets its descriptor, and remove a file there",
		run: func(w *world) error {
			u, err := newRing(16, 0)
			if err == nil {
				err = errors.Join(os.Mkdir("was", 0o700), os.Mkdir("is", 0o700), filesOf("was/x", "is/x"))
			}
			if err != nil {
				return err
			}
			fd, err := unix.Open("was", unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			end := uring.Entry{Op: uring.Close, FD: int32(fd), Flags: uring.Link}
			to := openEntry("is", unix.O_DIRECTORY, 1)
			to.Flags = uring.Link
			u.Queue(end, to, uring.Entry{Op: uring.Unlinkat, FD: int32(fd), Addr: uint64(addr(text("x"))), UserData: 2})
			u.Enter(3)
			completions(w, u)
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.exists("is/x") || !e.exists("was/x") {
				return failed("the file system says that it was not removed there")
			}
			return e.compare(done(schemas.EventUnlink, "is/x"))
		}})
	add(attack{name: "silent ring requests and an outsider", class: "A6", alone: true,
		what: "requests without completions make folders; then a process outside of the run makes others through a ring of its own",
		run: func(w *world) error {
			u, err := newRing(16, 0)
			if err != nil {
				return err
			}
			for i := range 8 {
				u.Queue(uring.Entry{Op: uring.Mkdirat, Flags: uring.Silent, FD: cwdFD, Addr: uint64(addr(text(fmt.Sprint("in", i)))), Len: 0o700, UserData: 7})
			}
			u.Enter(0)
			for i := range 8 {
				for unix.Access(fmt.Sprint("in", i), 0) != nil {
				}
			}
			unix.Close(u.FD)
			w.signal("ring")
			return w.await("outside")
		},
		outside: func(o *world) {
			if o.await("ring") == nil {
				for range 8 {
					if u, err := uring.With(16, 0); err == nil {
						for i := range 8 {
							u.Queue(uring.Entry{Op: uring.Mkdirat, FD: cwdFD, Addr: uint64(addr(text(o.path(fmt.Sprint("out", i))))), Len: 0o700, UserData: 7})
						}
						u.Enter(8)
						unix.Close(u.FD)
					}
				}
			}
			o.signal("outside")
		},
		judge: func(e *evidence) verdict {
			var names []string
			for i := range 8 {
				if !e.exists(fmt.Sprint("in", i)) || !e.exists(fmt.Sprint("out", i)) {
					return failed("folders are not there")
				}
				names = append(names, fmt.Sprint("in", i))
			}
			return e.silent(names...)
		}})
	add(attack{name: "silent ring requests that fail", class: "A6", user: true,
		what: "requests without completions on success: one makes a folder, one fails, and one linked to that one is never tried",
		run: func(w *world) error {
			u, err := newRing(16, 0)
			if err != nil {
				return err
			}
			mkdir := func(name string, flags uint8) uring.Entry {
				return uring.Entry{Op: uring.Mkdirat, Flags: flags, FD: cwdFD, Addr: uint64(addr(text(name))), Len: 0o700, UserData: 7}
			}
			absent := openEntry("absent", unix.O_RDONLY, 7)
			absent.Flags = uring.Silent | uring.Link
			u.Queue(mkdir("made", uring.Silent), absent, mkdir("never", 0))
			u.Enter(1)
			completions(w, u)
			for unix.Access("made", 0) != nil {
			}
			return nil
		},
		judge: func(e *evidence) verdict {
			if !e.exists("made") || e.exists("never") || e.said("cqe 7") != "-2" {
				return failed("made, never, completion: %v %v %s", e.exists("made"), e.exists("never"), e.said("cqe 7"))
			}
			if v := e.compare([]fact{{kind: schemas.EventOpenat, value: "absent", failed: true, errno: 2}}); v.result != isExact {
				return v
			}
			return e.silent("made")
		}})
	add(attack{name: "ring requests refused at once", class: "B9", user: true,
		what: "requests that the kernel does not prepare, because their flags or addresses are wrong",
		run: func(w *world) error {
			u, err := newRing(16, uring.All)
			if err != nil {
				return err
			}
			bad := uring.Entry{Op: uring.Mkdirat, FD: cwdFD, Addr: uint64(addr(text("mkdir"))), Off: 1, UserData: 1}
			how := unix.OpenHow{Flags: 1 << 40}
			u.Queue(bad, uring.Entry{Op: uring.Openat2, FD: cwdFD, Addr: uint64(addr(text("open"))), Len: 3, Off: uint64(addr(&how)), UserData: 2},
				uring.Entry{Op: uring.Unlinkat, FD: cwdFD, Addr: uint64(addr(text("unlink"))), OpFlags: 1 << 20, UserData: 3})
			for n := 0; n < 3; n += len(completions(w, u)) {
				u.Enter(1)
			}
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("cqe 1") != "-22" || e.said("cqe 2") != "-22" || e.said("cqe 3") != "-22" {
				return failed("completions %s %s %s", e.said("cqe 1"), e.said("cqe 2"), e.said("cqe 3"))
			}
			const invalid = 22
			return e.compare([]fact{{kind: schemas.EventMkdir, value: "mkdir", failed: true, errno: invalid},
				{kind: schemas.EventOpenat, value: "open", failed: true, errno: invalid}, {kind: schemas.EventUnlink, value: "unlink", failed: true, errno: invalid}})
		}})
}
