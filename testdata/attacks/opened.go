//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/testdata/workload/uring"
)

// otherFile opens a file again and again, while a thread closes the descriptor and opens another file, which gets it.
func otherFile(w *world, closes func(i int, fd uintptr) int64) error {
	if err := errors.Join(os.WriteFile("a", nil, 0o600), os.WriteFile("b", nil, 0o600)); err != nil {
		return err
	}
	a, b := text("a"), text("b")
	lowest := uintptr(raw(unix.SYS_OPENAT, cwd, addr(a), unix.O_RDONLY)) // the number that the next open gets
	raw(unix.SYS_CLOSE, lowest)
	var others atomic.Int64
	stop := meanwhile(func(i int) {
		if closes(i, lowest) == 0 {
			if raw(unix.SYS_OPENAT, cwd, addr(b), unix.O_RDONLY) >= 0 {
				others.Add(1)
			}
		}
	})
	n := 2 // that of lowest, and that of os.WriteFile
	for range manyTimes {
		if fd := raw(unix.SYS_OPENAT, cwd, addr(a), unix.O_RDONLY); fd >= 0 {
			n++
			raw(unix.SYS_CLOSE, uintptr(fd))
		}
	}
	stop()
	w.say("a", n)
	w.say("b", others.Load()+1)
	return nil
}

// eachOpened judges opens of two files, whose numbers the program told.
func eachOpened(e *evidence) verdict {
	if e.said("b") == "" {
		return failed("it did not come to its end: %s", e.end)
	}
	var a, b, marked int64
	for i := range e.own {
		switch l := &e.own[i]; {
		case l.Type != schemas.EventOpenat || l.Status != schemas.StatusSuccess:
		case l.marked() != "":
			marked++
		case l.text() == e.path("a"):
			a++
		case l.text() == e.path("b"):
			b++
		}
	}
	var wantA, wantB int64
	fmt.Sscan(e.said("a"), &wantA)
	fmt.Sscan(e.said("b"), &wantB)
	switch {
	case a > wantA || b > wantB:
		return lie("false: %d opens of a and %d of b, there were %d and %d", a, b, wantA, wantB)
	case a+b+marked != wantA+wantB:
		return lie("absent: %d of %d opens", wantA+wantB-a-b-marked, wantA+wantB)
	case marked > 0:
		return declared("doubt changed")
	}
	return exact()
}

func init() {
	add(attack{name: "another file on the descriptor that an open got", class: "A10", user: true, chance: true,
		what: "a thread closes what the other has just opened and opens another file, which gets the same descriptor",
		run: func(w *world) error {
			return otherFile(w, func(_ int, fd uintptr) int64 { return raw(unix.SYS_CLOSE, fd) })
		},
		judge: eachOpened})

	add(attack{name: "another file on the descriptor by a ring", class: "A10", user: true, chance: true,
		what: "the same, but the thread's ring closes it: itself and a worker by turns",
		run: func(w *world) error {
			u, err := newRing(4, 0)
			if err != nil {
				return err
			}
			return otherFile(w, func(i int, fd uintptr) int64 {
				return u.Do(uring.Entry{Op: uring.Close, FD: int32(fd), Flags: uint8(i&1) * uring.Async})
			})
		},
		judge: eachOpened})
}
