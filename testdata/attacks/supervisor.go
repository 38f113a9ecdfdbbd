//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// include/uapi/linux: userfaultfd.h, seccomp.h.
const (
	faultAPI         = 0xc018aa3f
	faultRegister    = 0xc020aa00
	faultCopy        = 0xc028aa03
	faultMissing     = 1
	seccompReceive   = 0xc0502100
	seccompSend      = 0xc0182101
	seccompAddFD     = 0xc0182103
	seccompSetFD     = 1
	seccompNewListen = 1 << 3
)

func ioctl[T any](fd int, request uintptr, p *T) error {
	if r := raw(unix.SYS_IOCTL, uintptr(fd), request, addr(p)); r < 0 {
		return unix.Errno(-r)
	}
	return nil
}

// waitingName is memory that a call which reads it waits for, until the returned function puts the text there.
func waitingName() (at uintptr, put func(text string) error, reached func() error, err error) {
	r, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno != 0 {
		return 0, nil, nil, notHere("no userfaultfd: " + errno.Error())
	}
	fd := int(r)
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return 0, nil, nil, err
	}
	at = addr(&page[0])
	if err := ioctl(fd, faultAPI, &[3]uint64{0xaa}); err != nil {
		return 0, nil, nil, err
	}
	if err := ioctl(fd, faultRegister, &[4]uint64{uint64(at), 4096, faultMissing}); err != nil {
		return 0, nil, nil, err
	}
	reached = func() error { _, err := unix.Read(fd, make([]byte, 32)); return err }
	put = func(text string) error {
		src, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return err
		}
		copy(src, text)
		return ioctl(fd, faultCopy, &[5]uint64{uint64(at), uint64(addr(&src[0])), 4096})
	}
	return at, put, reached, nil
}

// replacedBySupervisor lets one thread wait for a supervisor, another one in fsetxattr, and puts another file on that one's
// descriptor meanwhile. A large write to this file holds its lock, so that there is time to take it back before the call ends.
func replacedBySupervisor(w *world) error {
	open := func(name string) int {
		fd, _ := unix.Open(name, unix.O_RDWR|unix.O_CREAT, 0o600)
		return fd
	}
	f, b := open("A"), open("B")
	a, _ := unix.Dup(f)
	writer := open("B")
	if err := unix.Fremovexattr(b, "user.x"); err != unix.ENODATA {
		return notHere(fmt.Sprint("no attributes here: ", err))
	}
	name, put, reached, err := waitingName()
	if err != nil {
		return err
	}
	listener, ended := make(chan int), make(chan error, 1)
	go func() { // waits for its supervisor
		runtime.LockOSThread() // and ends with its filter
		fd, err := filter(seccompNotify, seccompNewListen, unix.SYS_GETPPID)
		if err != nil {
			fd = -1
		}
		listener <- fd
		unix.Syscall(unix.SYS_GETPPID, 0, 0, 0) // not raw: the runtime has to go on
	}()
	l := <-listener
	if l < 0 {
		return notHere("no seccomp supervisors")
	}
	var n [80]byte
	if err := ioctl(l, seccompReceive, &n); err != nil {
		return err
	}
	id := *(*uint64)(unsafe.Pointer(&n))
	give := func(fd int) error {
		add := struct {
			id                        uint64
			flags, from, to, newFlags uint32
		}{id, seccompSetFD, uint32(fd), uint32(f), 0}
		return ioctl(l, seccompAddFD, &add)
	}
	go func() {
		runtime.LockOSThread()
		value := text("v")
		if _, _, errno := unix.Syscall6(unix.SYS_FSETXATTR, uintptr(f), name, addr(value), 1, 0, 0); errno != 0 {
			ended <- errno
		}
		close(ended)
	}()
	if err := reached(); err != nil {
		return err
	}
	if err := give(b); err != nil {
		return notHere("no descriptors from supervisors: " + err.Error())
	}
	written := make(chan bool)
	go func() {
		runtime.LockOSThread()
		buf, _ := unix.Mmap(-1, 0, 900<<20, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		unix.Write(writer, buf)
		unix.Munmap(buf)
		close(written)
	}()
	time.Sleep(20 * time.Millisecond)
	err = put("user.x\x00")
	time.Sleep(20 * time.Millisecond)
	if err == nil {
		err = give(a)
	}
	failed := <-ended
	<-written
	ioctl(l, seccompSend, &[3]uint64{id, 1})
	for _, fd := range []struct {
		name string
		fd   int
	}{{"A", a}, {"B", b}} {
		if _, e := unix.Fgetxattr(fd.fd, "user.x", make([]byte, 8)); e == nil {
			w.say("at", fd.name)
		}
	}
	os.Truncate("B", 0)
	if failed != nil {
		return fmt.Errorf("fsetxattr: %w", failed)
	}
	return err
}
