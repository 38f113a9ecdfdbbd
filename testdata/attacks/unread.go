//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// Texts that are not in memory yet when their call is entered: the kernel brings them when it reads them, and others can write them until then.

// unread makes a process of its own wait in an open of a FIFO, whose name it has not touched, and writes another one by another mapping
// meanwhile. If the first mapping is larger, the name begins in its first page, and only the end of it is in the other one.
func unread(maps func(w *world) (name, writable []byte, err error)) func(w *world) error {
	return func(w *world) error {
		name, writable, err := maps(w)
		if err == nil {
			err = unix.Mkfifo("fifo", 0o600)
		}
		if err != nil {
			return err
		}
		full := w.path("fifo")
		rest := len(full) // what of it is in the other mapping
		if len(name) > len(writable) {
			rest -= copy(name[len(name)-len(writable)-len(w.dir):], w.dir)
		}
		copy(writable, full[len(full)-rest:])
		at := uintptr(unsafe.Pointer(&name[len(name)-len(writable)])) - uintptr(len(full)-rest)
		return whileItWaits(func() { raw(unix.SYS_OPENAT, cwd, at, unix.O_RDONLY) }, func(int) error {
			copy(writable[rest-len("fifo"):], "none")
			return nil
		})
	}
}

// twice maps a file that can be written, and the same one opened again that cannot.
func twice(fd int, err error) (name, writable []byte, _ error) {
	if err != nil {
		return nil, nil, err
	}
	again, err := unix.Open(fmt.Sprint("/proc/self/fd/", fd), unix.O_RDONLY, 0)
	if err == nil {
		err = unix.Ftruncate(fd, 4096)
	}
	if err != nil {
		return nil, nil, err
	}
	name, err = unix.Mmap(again, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	if err == nil {
		writable, err = unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	return name, writable, err
}

// attached is System V shared memory, once to read and once to write.
func attached() (name, writable []byte, _ error) {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		return nil, nil, noSuch(err, "no shared memory of System V")
	}
	defer unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	if writable, err = unix.SysvShmAttach(id, 0, 0); err == nil {
		name, err = unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	}
	return name, writable, err
}

// half is memory of this process alone, of which the second page is a file's.
func half() (name, writable []byte, _ error) {
	fd, err := unix.Open("page", unix.O_RDWR|unix.O_CREAT, 0o600)
	if err == nil {
		err = unix.Ftruncate(fd, 4096)
	}
	if err == nil {
		writable, err = unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err == nil {
		name, err = unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	}
	if err == nil {
		_, err = unix.MmapPtr(fd, 0, unsafe.Pointer(&name[4096]), 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	}
	return name, writable, err
}

// ownCopy is a page of a file that nobody can write, and that this process has a copy of its own of as soon as it writes there.
func ownCopy(name, text string, prot int) ([]byte, error) {
	if err := os.WriteFile(name, append([]byte(text), make([]byte, 4096-len(text))...), 0o600); err != nil {
		return nil, err
	}
	fd, err := unix.Open(name, unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	page, err := unix.Mmap(fd, 0, 4096, prot, unix.MAP_PRIVATE)
	if err == nil {
		err = unix.Madvise(page, unix.MADV_DONTNEED)
	}
	return page, err
}

// ownCopyWritten lets a thread wait in an open of a FIFO whose name is in such a page, and writes another one there.
func ownCopyWritten(w *world) error {
	page, err := ownCopy("texts", w.path("fifo"), unix.PROT_READ|unix.PROT_WRITE)
	if err == nil {
		err = errors.Join(unix.Mkfifo("fifo", 0o600), survive(unix.SIGUSR2, 0))
	}
	if err != nil {
		return err
	}
	var caller waiter
	ended := make(chan unix.Errno)
	go func() {
		runtime.LockOSThread()
		caller.calls()
		_, _, errno := unix.Syscall(unix.SYS_OPENAT, cwd, addr(&page[0]), unix.O_RDONLY) // not raw: signals of the runtime would let it begin anew
		ended <- errno
	}()
	if err := caller.asleep(); err != nil {
		return err
	}
	copy(page, w.path("none"))
	unix.Tgkill(os.Getpid(), int(caller.tid.Load()), unix.SIGUSR2)
	w.say("errno", int(<-ended))
	return nil
}

func init() {
	add(attack{name: "an unread text in shared memory", class: "B7", user: true, judge: waited,
		what: "an open waits; its text is in shared memory of System V that it can only read (SHM_RDONLY) and has not touched, and another process changes it",
		run:  unread(func(*world) ([]byte, []byte, error) { return attached() })})
	add(attack{name: "an unread text in a memfd", class: "B7", user: true, judge: waited,
		what: "the same in a memfd that was opened again, only to be read: the kernel does not count who can write it",
		run: unread(func(*world) ([]byte, []byte, error) {
			return twice(unix.MemfdCreate("text", unix.MFD_CLOEXEC))
		})})
	add(attack{name: "a text of which half is not read", class: "B7", user: true, alone: true, judge: waited,
		what: "the same, but the text begins in memory of the process alone, and only the page where it ends is that of a file",
		run:  unread(func(*world) ([]byte, []byte, error) { return half() })})
	add(attack{name: "a thread writes a text of its program", class: "B7", user: true, run: ownCopyWritten,
		what: "an open waits; its text is in a page of the program's file that nobody has touched, and another thread writes there, to a copy that only the process has",
		judge: func(e *evidence) verdict {
			if e.said("errno") != fmt.Sprint(int(unix.EINTR)) {
				return failed("the open ended with %s", e.said("errno"))
			}
			var found []told
			for _, l := range e.own {
				if l.Type == schemas.EventOpenat && l.Status != schemas.StatusSuccess {
					found = append(found, l)
				}
			}
			switch {
			case len(found) != 1:
				return lie("%d lines of the open", len(found))
			case found[0].marked() != "":
				return declared("%s", found[0].marked())
			case found[0].text() == e.path("fifo"):
				return exact()
			}
			return lie("false: %s", e.show(&found[0]))
		}})
	add(attack{name: "a text of the program that is not in memory", class: "B7", user: true, alone: true, ordinary: true,
		what: "opens of two names, one of a file and one of none, by a program with threads; the names are in a page of a file that it only reads",
		run: func(w *world) error {
			for i, name := range []string{"file", "none"} {
				page, err := ownCopy(fmt.Sprint("texts", i), w.path(name), unix.PROT_READ)
				if err != nil {
					return err
				}
				if name == "file" {
					err = os.WriteFile(name, nil, 0o600)
				}
				if err != nil {
					return err
				}
				w.say(name, raw(unix.SYS_OPENAT, cwd, addr(&page[0]), unix.O_RDONLY) >= 0)
			}
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("file") != "true" || e.said("none") != "false" {
				return failed("opened: the file %s, the other %s", e.said("file"), e.said("none"))
			}
			return undoubted(e.compare(append(done(schemas.EventOpenat, "texts0", "texts0", "file", "file", "texts1", "texts1"),
				fact{kind: schemas.EventOpenat, value: "none", failed: true, errno: int(unix.ENOENT)})))
		}})
}

// undoubted is a verdict on an ordinary act whose lines must have no mark. Kernels before 5.17 cannot say whose memory it is.
func undoubted(v verdict) verdict {
	var name unix.Utsname
	var major, minor int
	unix.Uname(&name)
	fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor)
	if v.result == isDeclared && major*1000+minor >= 5017 {
		return verdict{isDoubtful, v.detail}
	}
	return v
}

func init() {
	text := "f" + strings.Repeat("\x00", 4095)
	add(attack{name: "a place changed while a name is brought", class: "A10", alone: true, needs: needsFuse,
		what: "rename of a name that a file system of its own (FUSE) has yet to bring to memory; until it does, another thread changes the working directory",
		outside: serving(func(o *world) func(string) node {
			return func(name string) node {
				return node{unix.S_IFREG | 0o666, text, func() {
					o.signal("asked")
					o.await("moved")
				}}
			}
		}),
		run: inside(func(w *world) error {
			if err := errors.Join(places(w), os.WriteFile("d1/f", nil, 0o600), os.WriteFile("d2/f", nil, 0o600)); err != nil {
				return err
			}
			fd, err := unix.Open("mnt/text", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			page, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE)
			if err == nil {
				err = unix.Chdir(w.path("d1"))
			}
			if err != nil {
				return err
			}
			ended := make(chan unix.Errno)
			go func() {
				runtime.LockOSThread()
				g := []byte("g\x00")
				_, _, errno := unix.Syscall6(unix.SYS_RENAMEAT2, cwd, addr(&page[0]), cwd, addr(&g[0]), 0, 0)
				ended <- errno
			}()
			err = errors.Join(w.await("asked"), unix.Chdir(w.path("d2")))
			w.signal("moved")
			if errno := <-ended; errno != 0 {
				return errno
			}
			return err
		}),
		judge: func(e *evidence) verdict {
			switch {
			case e.exists("d2/g"):
				return e.compare(append(done(schemas.EventRenameFrom, "d2/f"), done(schemas.EventRenameTo, "d2/g")...))
			case e.exists("d1/g"):
				return e.compare(append(done(schemas.EventRenameFrom, "d1/f"), done(schemas.EventRenameTo, "d1/g")...))
			}
			return failed("nothing was renamed")
		}})
}
