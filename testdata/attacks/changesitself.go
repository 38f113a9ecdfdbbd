//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// Memory that a process has alone, and that changes all the same: the kernel, or another process by it, takes away what it had.

// takeAway has the kernel give back a page of a process, if it may. Both must be on one processor: what was put there lately is in
// a list of that processor, and is not given back from another one.
func takeAway(pid int, page []byte) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return noSuch(err, "no pidfd")
	}
	defer unix.Close(fd)
	part := unix.Iovec{Base: &page[0]}
	part.SetLen(len(page))
	if r := raw(unix.SYS_PROCESS_MADVISE, uintptr(fd), addr(&part), 1, unix.MADV_PAGEOUT, 0); r < 0 {
		return noSuch(unix.Errno(-r), "no process_madvise")
	}
	return nil
}

// onOne keeps this thread, and what it starts, on the first of its processors.
func onOne() error {
	var may, one unix.CPUSet
	err := unix.SchedGetaffinity(0, &may)
	for i := range len(may) * 64 {
		if may.IsSet(i) {
			one.Set(i)
			break
		}
	}
	return errors.Join(err, unix.SchedSetaffinity(0, &one))
}

// dropped is an open of a name in memory that the kernel may drop, and does.
func dropped(w *world) error {
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_DROPPABLE|unix.MAP_ANON)
	if err != nil {
		return notHere("no MAP_DROPPABLE, Linux 6.11")
	}
	if err := errors.Join(unix.Mkfifo("fifo", 0o600), onOne()); err != nil {
		return err
	}
	name := append([]byte(w.path("fifo")), 0)
	return whileItWaits(func() {
		copy(page, name) // no other process has what was written there
		raw(unix.SYS_OPENAT, cwd, addr(&page[0]), unix.O_RDONLY)
	}, func(pid int) error {
		if err := takeAway(pid, page); err != nil {
			return err
		}
		read := make([]byte, 1)
		local := unix.Iovec{Base: &read[0]}
		local.SetLen(1)
		if _, err := unix.ProcessVMReadv(pid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: addr(&page[0]), Len: 1}}, 0); err != nil {
			return err
		}
		if read[0] != 0 {
			return notHere("the kernel does not drop the page")
		}
		return nil
	})
}

// filled is an open of a name in memory that the kernel may free, and of which a userfaultfd of the device says what it is then.
func filled(w *world) error {
	shared, err := mapped()
	if err != nil {
		return err
	}
	const size = 4096
	memory, err := unix.Mmap(-1, 0, 8*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err == nil {
		err = errors.Join(unix.Madvise(memory, unix.MADV_NOHUGEPAGE), unix.Mkfifo("fifo", 0o600), onOne())
	}
	if err != nil {
		return err
	}
	page := memory[4*size : 5*size]
	name, device := append([]byte(w.path("fifo")), 0), text("/dev/userfaultfd")
	api, register := [3]uint64{0xaa}, [4]uint64{uint64(addr(&page[0])), size, faultMissing}
	faults := (*atomic.Int64)(unsafe.Pointer(&shared[0]))
	const newFault = 0xaa00
	pid, err := sharing(unix.CLONE_FILES, func() { // so that this process has its userfaultfd, too
		fd := raw(unix.SYS_OPENAT, cwd, addr(device), unix.O_RDONLY)
		if fd >= 0 {
			fd = raw(unix.SYS_IOCTL, uintptr(fd), newFault, unix.O_CLOEXEC)
		}
		if fd < 0 {
			faults.Store(fd)
			for {
				raw(unix.SYS_EXIT_GROUP)
			}
		}
		raw(unix.SYS_IOCTL, uintptr(fd), faultAPI, addr(&api))
		copy(page, name)
		raw(unix.SYS_IOCTL, uintptr(fd), faultRegister, addr(&register))
		raw(unix.SYS_MADVISE, addr(&page[0]), size, unix.MADV_FREE)
		faults.Store(fd)
		raw(unix.SYS_OPENAT, cwd, addr(&page[0]), unix.O_RDONLY)
		for {
			raw(unix.SYS_EXIT_GROUP)
		}
	})
	if err != nil {
		return err
	}
	defer reap(pid)
	for faults.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if fd := faults.Load(); fd < 0 {
		return notHere("no /dev/userfaultfd: " + unix.Errno(-fd).Error())
	}
	if err := errors.Join(childAsleep(pid), takeAway(pid, page)); err != nil {
		return err
	}
	other := append([]byte(w.path("none")), make([]byte, size)...)
	err = ioctl(int(faults.Load()), faultCopy, &[5]uint64{uint64(addr(&page[0])), uint64(addr(&other[0])), size})
	if errors.Is(err, unix.EEXIST) {
		return notHere("the kernel does not free the page")
	}
	return err
}

// clock is where the kernel keeps the second of the day's time in this process.
func clock() *uint32 {
	maps, _ := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		if !strings.HasSuffix(line, "[vvar]\n") || !strings.HasPrefix(strings.Fields(line)[1], "r") {
			continue
		}
		fmt.Sscanf(line, "%x-%x", &from, &to)
		now := time.Now().Unix()
		words := unsafe.Slice((*int64)(*(*unsafe.Pointer)(unsafe.Pointer(&from))), 512)
		for i := range words {
			if d := atomic.LoadInt64(&words[i]) - now; d == 0 || d == 1 {
				return (*uint32)(unsafe.Pointer(&words[i]))
			}
		}
	}
	return nil
}

// nameOf is the name that the memory with a second has. There are seconds without one.
func nameOf(second uint32) string {
	b := (*[4]byte)(unsafe.Pointer(&second))[:]
	if bytes.ContainsAny(b, "\x00/.") {
		return ""
	}
	return string(b)
}

// timed opens a FIFO whose name is the second, and which waits until it is another one.
func timed(w *world) error {
	second := clock()
	if second == nil {
		return notHere("no second in [vvar]")
	}
	for range 4 {
		began := atomic.LoadUint32(second)
		for atomic.LoadUint32(second) == began {
			time.Sleep(time.Millisecond)
		}
		began++
		if nameOf(began) == "" || nameOf(began+1) == "" {
			continue
		}
		if err := unix.Mkfifo(nameOf(began), 0o600); err != nil {
			return err
		}
		w.say("second", began)
		return whileItWaits(func() { raw(unix.SYS_OPENAT, cwd, addr(second), unix.O_RDONLY) }, func(int) error {
			for atomic.LoadUint32(second) == began {
				time.Sleep(time.Millisecond)
			}
			return nil
		})
	}
	return notHere("the second is no name now")
}

func init() {
	add(attack{name: "a text that the kernel drops", class: "B7", alone: true, run: dropped, judge: waited,
		what: "an open waits; its text is in memory that the kernel may drop (MAP_DROPPABLE). Another process makes it do so (process_madvise), and reads there, which brings zeros"})
	add(attack{name: "a text that a userfaultfd brings", class: "B7", alone: true, run: filled, judge: waited,
		what: "the same in memory that the kernel may free (MADV_FREE); another process brings another text, by a userfaultfd of the device, which was opened only to be read"})
	add(attack{name: "a text that is the clock", class: "B7", user: true, alone: true, run: timed,
		what: "an open waits; its text is the second in the memory that the kernel has in each process ([vvar])",
		judge: func(e *evidence) verdict {
			var second uint32
			fmt.Sscan(e.said("second"), &second)
			for i := range e.own {
				l := &e.own[i]
				if l.Type != schemas.EventOpenat || l.PID == e.pid {
					continue
				}
				switch {
				case l.marked() != "":
					return declared("%s", l.marked())
				case l.text() == e.path(schemas.Text(nameOf(second))):
					return exact()
				}
				return lie("false: %s", e.show(l))
			}
			return lie("absent: the open")
		}})
}
