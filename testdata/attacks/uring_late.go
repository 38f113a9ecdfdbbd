//go:build linux

package main

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/uring"
)

// isOpen reports whether a number is that of a descriptor.
func isOpen(fd int32) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
}

// becomes waits until a descriptor is open, or closed.
func becomes(fd int32, open bool) bool {
	for range 1000 {
		if isOpen(fd) == open {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// exchanged lets a worker of a ring open secret, lets another ring close it, and opens benign, which gets the same descriptor,
// before the first one has its completion. asked and closes are about that descriptor.
func exchanged(asked, closes func(fd int32) error) func(w *world) error {
	return func(w *world) error {
		u, err := newRing(16, uring.Deferred)
		if err == nil {
			err = filesOf("benign")
		}
		if err != nil {
			return err
		}
		fd := nextFD()
		if err := asked(fd); err != nil {
			return err
		}
		u.Submit(openEntry("secret", unix.O_CREAT|unix.O_RDONLY, 1))
		if !becomes(fd, true) {
			return unix.ETIME
		}
		if err := closes(fd); err != nil {
			return err
		}
		if !becomes(fd, false) {
			return unix.ETIME
		}
		again, err := unix.Open("benign", unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		w.say("cqe 3", again)
		u.Enter(1)
		completions(w, u)
		return nil
	}
}

// waiting is a ring with a request to close a descriptor that waits for another one.
type waiting struct {
	u    *uring.Ring
	pipe [2]int
	byte [1]byte
}

// ask makes the request. Its descriptor is free afterwards, after it had a file or not.
func (r *waiting) ask(had bool) func(fd int32) error {
	return func(fd int32) (err error) {
		if had {
			if _, err := unix.Open("benign", unix.O_RDONLY, 0); err != nil {
				return err
			}
		}
		r.u.Queue(uring.Entry{Op: uring.Read, Flags: uring.Link, FD: int32(r.pipe[0]), Addr: uint64(addr(&r.byte)), Len: 1},
			uring.Entry{Op: uring.Close, Flags: uring.Silent, FD: fd})
		r.u.Enter(0)
		if had {
			return unix.Close(int(fd))
		}
		return nil
	}
}

// exchangedLater is exchanged by a request that was made before the open.
func exchangedLater(had bool) func(w *world) error {
	return func(w *world) error {
		r := new(waiting)
		var err error
		if r.u, err = newRing(4, 0); err != nil {
			return err
		}
		if err := unix.Pipe(r.pipe[:]); err != nil {
			return err
		}
		defer runtime.KeepAlive(r)
		return exchanged(r.ask(had), func(int32) error {
			_, err := unix.Write(r.pipe[1], []byte("x"))
			r.u.Wait()
			return err
		})(w)
	}
}

func init() {
	add(attack{name: "ring completes late and another closes", class: "A5", user: true, judge: bothOpened("benign"),
		what: "a worker creates a file; before its completion is waited for, a worker of another ring closes it without a completion, and a call opens another",
		run: func(w *world) error {
			u, err := newRing(4, 0)
			if err != nil {
				return err
			}
			return exchanged(func(int32) error { return nil }, func(fd int32) error {
				u.Submit(uring.Entry{Op: uring.Close, Flags: uring.Async | uring.Silent, FD: fd})
				return nil
			})(w)
		}})
	add(attack{name: "ring was to close a free descriptor", class: "A5", user: true, judge: bothOpened("benign"), run: exchangedLater(false),
		what: "the same, but the request to close was made before the file was created: it waits, and no file had its descriptor then"})
	add(attack{name: "ring was to close another file", class: "A5", user: true, judge: bothOpened("benign", "benign"), run: exchangedLater(true),
		what: "the same, but another file had the descriptor then, which a call closed"})
	add(attack{name: "another file on the descriptor by a silent ring", class: "A10", user: true, chance: true, judge: eachOpened,
		what: "a thread's ring closes what another thread has just opened, by a worker and without a completion, and opens another file, which gets the same descriptor",
		run: func(w *world) error {
			u, err := newRing(4, 0)
			if err != nil {
				return err
			}
			return otherFile(w, func(_ int, fd uintptr) int64 {
				if !isOpen(int32(fd)) {
					return 0
				}
				u.Submit(uring.Entry{Op: uring.Close, Flags: uring.Async | uring.Silent, FD: int32(fd)})
				for range 100 {
					if !isOpen(int32(fd)) {
						return 0
					}
				}
				return -1
			})
		}})
}
