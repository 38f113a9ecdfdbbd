//go:build linux

package main

import (
	"errors"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/testdata/workload/uring"
)

func init() {
	add(attack{name: "a dead descriptor beside an absolute name", class: "B8",
		what: "in a chroot, renameat2 of an absolute name with a dead descriptor for the other name, and openat2 of one in the root that a dead descriptor is",
		run: func(w *world) error {
			if err := unix.Mkdir("root", 0o700); err != nil {
				return err
			}
			root, from, to := text("root"), text("/from"), text("to")
			how := &unix.OpenHow{Resolve: unix.RESOLVE_IN_ROOT}
			var renamed, opened int64
			pid, err := child(func() {
				raw(unix.SYS_CHROOT, addr(root))
				renamed = raw(unix.SYS_RENAMEAT2, cwd, addr(from), 900, addr(to), 0)
				opened = raw(unix.SYS_OPENAT2, 900, addr(from), addr(how), unsafe.Sizeof(*how))
				raw(unix.SYS_EXIT, uintptr(renamed+int64(unix.EBADF)|opened-renamed))
			})
			if err != nil {
				return err
			}
			var status unix.WaitStatus
			_, err = unix.Wait4(pid, &status, 0, nil)
			w.say("exit", status.ExitStatus())
			return err
		},
		judge: func(e *evidence) verdict {
			if e.said("exit") != "0" {
				return failed("the calls did not fail with EBADF: %s", e.said("exit"))
			}
			want := map[uint32]string{schemas.EventRenameFrom: e.path("root/from"), schemas.EventRenameTo: "to", schemas.EventOpenat: "from"}
			return e.withoutBase(want)
		}})

	add(attack{name: "dead descriptor of a ring beside an absolute name", class: "B8",
		what: "in a chroot, a request renames an absolute name with a dead descriptor for the other name",
		run: func(w *world) error {
			if err := unix.Mkdir("root", 0o700); err != nil {
				return err
			}
			u, err := newRing(4, 0)
			if err != nil {
				return err
			}
			ended := make(chan error)
			go func() { // its thread ends with it: no other code is in the chroot
				runtime.LockOSThread()
				ended <- renamesInRoot(w, u)
			}()
			return <-ended
		},
		judge: func(e *evidence) verdict {
			if e.said("rename") != strconv.Itoa(-int(unix.EBADF)) {
				return failed("the request did not fail with EBADF: %s", e.said("rename"))
			}
			return e.withoutBase(map[uint32]string{schemas.EventRenameFrom: e.path("root/from"), schemas.EventRenameTo: "to"})
		}})
}

// renamesInRoot has no absolute name outside of its new root.
func renamesInRoot(w *world, u *uring.Ring) error {
	if err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Chroot("root")); err != nil {
		return err
	}
	from, to := text("/from"), text("to")
	w.say("rename", u.Do(uring.Entry{Op: uring.Renameat, FD: cwdFD, Addr: uint64(addr(from)), Off: uint64(addr(to)), Len: 900}))
	return nil
}

// withoutBase compares the lines of calls and requests that failed because of a dead descriptor.
// Such a descriptor is no place that could not be kept: nothing is in doubt.
func (e *evidence) withoutBase(want map[uint32]string) verdict {
	v := exact()
	for i := range e.own {
		l := &e.own[i]
		if l.Return == nil || *l.Return != -int64(unix.EBADF) {
			continue
		}
		if l.text() != want[l.Type] {
			return lie("%s", e.show(l))
		}
		if l.Doubt != "" {
			v = declared("%s", e.show(l))
		}
		delete(want, l.Type)
	}
	if len(want) > 0 {
		return lie("absent: %v", want)
	}
	return undoubted(v)
}
