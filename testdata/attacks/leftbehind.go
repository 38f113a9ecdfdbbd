//go:build linux

package main

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/uring"
)

// A worker of a ring keeps the table of descriptors that its task had when the worker began.

// asyncNop lets a ring have a worker.
func asyncNop(u *uring.Ring) { u.Do(uring.Entry{Op: uring.Nop, Flags: uring.Async}) }

func asyncOpen(name string) uring.Entry {
	e := openEntry(name, unix.O_RDONLY, 1)
	e.Flags = uring.Async
	return e
}

// openedOnce tells eachOpened that each file was made and opened once.
func openedOnce(w *world) {
	w.say("a", 2)
	w.say("b", 2)
}

func init() {
	add(attack{name: "another table after close_range", class: "A10", user: true,
		what: "close_range gives the thread descriptors of its own; its ring's worker opens in those of before, and the thread has another file by that number",
		run: func(w *world) error {
			if err := filesOf("a", "b"); err != nil {
				return err
			}
			u, err := newRing(8, uring.Deferred)
			if err != nil {
				return err
			}
			asyncNop(u)
			if r := raw(unix.SYS_CLOSE_RANGE, 500, 500, 2); r < 0 { // CLOSE_RANGE_UNSHARE
				return notHere("close_range with CLOSE_RANGE_UNSHARE: " + unix.Errno(-r).Error())
			}
			b := text("b")
			raw(unix.SYS_OPENAT, cwd, addr(b), unix.O_RDONLY)
			u.Do(asyncOpen("a"))
			openedOnce(w)
			return nil
		},
		judge: eachOpened})

	add(attack{name: "a close in the table that was left", class: "A10", user: true,
		what: "a thread takes descriptors of its own, and its ring's worker closes in those of before what another thread's ring has just opened there",
		run: func(w *world) error {
			if err := filesOf("a", "b"); err != nil {
				return err
			}
			u, err := newRing(8, 0)
			if err != nil {
				return err
			}
			asyncNop(u)
			number, left, closed, ended := make(chan int32), make(chan bool), make(chan bool), make(chan error)
			go func() {
				runtime.LockOSThread()
				ended <- func() error {
					v, err := newRing(8, uring.Deferred)
					if err != nil {
						return err
					}
					b := text("b")
					other := raw(unix.SYS_OPENAT, cwd, addr(b), unix.O_RDONLY)
					<-left
					n := nextFD()
					v.Submit(asyncOpen("a"))
					if !becomes(n, true) {
						return errors.New("a worker did not open the file")
					}
					number <- n
					<-closed
					raw(unix.SYS_FCNTL, uintptr(other), unix.F_DUPFD, uintptr(n))
					v.Wait()
					return nil
				}()
			}()
			if err := unix.Unshare(unix.CLONE_FILES); err != nil {
				return err
			}
			close(left)
			select {
			case n := <-number:
				u.Do(uring.Entry{Op: uring.Close, FD: n, Flags: uring.Async})
				close(closed)
				err = <-ended
			case err = <-ended:
			}
			openedOnce(w)
			return err
		},
		judge: eachOpened})
}
