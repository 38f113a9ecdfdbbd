//go:build linux

package main

import (
	"errors"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// written makes a process of its own wait in an open of a FIFO, changes the text of the name in its memory, and ends it.
func written(change func(pid int, at uintptr, text string) error) func(w *world) error {
	return func(w *world) error {
		if err := unix.Mkfifo("fifo", 0o600); err != nil {
			return err
		}
		name := make([]byte, 4096)
		copy(name, w.path("fifo"))
		return whileItWaits(func() { raw(unix.SYS_OPENAT, cwd, addr(&name[0]), unix.O_RDONLY) }, func(pid int) error {
			return change(pid, addr(&name[0]), w.path("none")+"\x00")
		})
	}
}

// whileItWaits makes a process of its own call what waits, does something meanwhile, and ends it.
func whileItWaits(call func(), meanwhile func(pid int) error) error {
	pid, err := child(call)
	if err != nil {
		return err
	}
	if err = childAsleep(pid); err == nil {
		err = meanwhile(pid)
	}
	reap(pid)
	return err
}

// waited judges the one open that such a process made, of the FIFO.
func waited(e *evidence) verdict {
	for i := range e.own {
		l := &e.own[i]
		if l.Type != schemas.EventOpenat || l.PID == e.pid {
			continue
		}
		switch {
		case l.marked() != "":
			return declared("%s", l.marked())
		case l.text() == e.path("fifo"):
			return exact()
		}
		return lie("false: %s", e.show(l))
	}
	return lie("absent: the open")
}

func init() {
	add(attack{name: "a process writes a name of another", class: "B7", user: true, alone: true, judge: waited,
		what: "an open waits, and another process changes its text by process_vm_writev: no thread and no mapping shares it",
		run: written(func(pid int, at uintptr, text string) error {
			b := []byte(text)
			local := unix.Iovec{Base: &b[0]}
			local.SetLen(len(b))
			_, err := unix.ProcessVMWritev(pid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: at, Len: len(b)}}, 0)
			if errors.Is(err, unix.EPERM) {
				return notHere("process_vm_writev: " + err.Error())
			}
			return err
		})})
	add(attack{name: "a process writes a name by a file of proc", class: "B7", user: true, alone: true, judge: waited,
		what: "the same by /proc/PID/mem",
		run: written(func(pid int, at uintptr, text string) error {
			f, err := os.OpenFile("/proc/"+strconv.Itoa(pid)+"/mem", os.O_WRONLY, 0)
			if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
				return notHere("/proc/PID/mem: " + err.Error())
			} else if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt(unsafe.Slice(unsafe.StringData(text), len(text)), int64(at))
			return err
		})})
}
