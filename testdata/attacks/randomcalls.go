//go:build linux

package main

import (
	"encoding/binary"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/uring"
)

// randomCalls are what random programs do, each with its weight.
var randomCalls = []struct {
	weight int
	do     func(a *actor)
}{
	{14, func(a *actor) { a.took(raw(unix.SYS_OPENAT, a.at(), a.path(), a.openFlags(), a.mode())) }},
	{6, (*actor).openat2},
	{4, func(a *actor) { raw(unix.SYS_UNLINKAT, a.at(), a.path(), a.odd(0, unix.AT_REMOVEDIR)) }},
	{5, func(a *actor) { raw(unix.SYS_MKDIRAT, a.at(), a.path(), a.mode()) }},
	{4, func(a *actor) { raw(unix.SYS_RENAMEAT2, a.at(), a.path(), a.at(), a.path(), a.odd(0, 0, 1, 2, 4)) }},
	{3, func(a *actor) { raw(unix.SYS_LINKAT, a.at(), a.path(), a.at(), a.path(), a.odd(0, 0x400, 0x1000)) }},
	{3, func(a *actor) { raw(unix.SYS_SYMLINKAT, a.path(), a.at(), a.path()) }},
	{2, func(a *actor) { raw(unix.SYS_TRUNCATE, a.local(), uintptr(a.IntN(9)-1)) }},
	{2, func(a *actor) { raw(unix.SYS_FTRUNCATE, a.fd(), uintptr(a.IntN(9))) }},
	{2, func(a *actor) { raw(unix.SYS_FCHMOD, a.fd(), a.mode()|0o700) }},
	{2, func(a *actor) { raw(unix.SYS_FCHMODAT, a.at(), a.path(), a.mode()|0o700) }},
	{1, func(a *actor) { raw(unix.SYS_FCHOWN, a.fd(), ^uintptr(0), uintptr(a.IntN(3))) }},
	{2, func(a *actor) {
		raw(unix.SYS_FCHOWNAT, a.at(), a.path(), ^uintptr(0), uintptr(a.IntN(3)), a.odd(0, 0x100, 0x1000))
	}},
	{2, func(a *actor) { raw(unix.SYS_MKNODAT, a.at(), a.path(), a.node(), 0) }},
	{1, func(a *actor) { raw(unix.SYS_EXECVEAT, cwd, a.bytes([]byte("none\x00")), 0, 0, a.odd(0, 0x100)) }},
	{1, func(a *actor) { raw(unix.SYS_UMOUNT2, a.local(), a.odd(2, 8)) }},
	{1, func(a *actor) { raw(unix.SYS_MOVE_MOUNT, a.at(), a.path(), a.at(), a.path(), a.odd(0, 4, 0x40)) }},
	{1, func(a *actor) {
		p := a.local()
		raw(unix.SYS_MOUNT, a.bytes([]byte("none\x00")), p, a.bytes([]byte("tmpfs\x00")), 0, 0)
	}},
	{6, (*actor).oldCall},
	{2, (*actor).move},
	{3, func(a *actor) {
		if len(a.fds) > 0 {
			i := a.IntN(len(a.fds))
			raw(unix.SYS_CLOSE, uintptr(a.fds[i]))
			a.fds = append(a.fds[:i], a.fds[i+1:]...)
		}
	}},
	{1, func(a *actor) { a.took(raw(unix.SYS_DUP, a.fd())) }},
	{6, (*actor).socket},
	{4, (*actor).throughRing},
}

// local is a path of a call that starts at the working directory without naming it.
func (a *actor) local() uintptr {
	p := a.path()
	a.tell(unix.AT_FDCWD, "cwd")
	return p
}

func (a *actor) odd(of ...uintptr) uintptr {
	if a.yes(12) {
		return uintptr(a.Uint32()) & 0x7fff
	}
	return of[a.IntN(len(of))]
}

func (a *actor) mode() uintptr { return uintptr(a.IntN(0o10000)) | 0o600 }

func (a *actor) node() uintptr {
	return []uintptr{unix.S_IFIFO, unix.S_IFREG, unix.S_IFSOCK, unix.S_IFDIR, 0}[a.IntN(5)] | a.mode()&0o777
}

// openFlags never make an open wait.
func (a *actor) openFlags() uintptr {
	f := uintptr(unix.O_NONBLOCK) | uintptr(a.IntN(4))
	for _, one := range []uintptr{unix.O_CREAT, unix.O_CREAT, unix.O_EXCL, unix.O_TRUNC, unix.O_APPEND, unix.O_DIRECTORY, unix.O_NOFOLLOW, unix.O_PATH, unix.O_CLOEXEC, unix.O_TMPFILE, unix.O_NOCTTY, unix.O_DIRECT} {
		if a.yes(6) {
			f |= one
		}
	}
	if a.yes(5) {
		f = unix.O_DIRECTORY | unix.O_RDONLY
	}
	if a.yes(30) {
		f |= uintptr(a.Uint32()) & 0x7fc00000
	}
	return f
}

func (a *actor) openat2() {
	how := make([]byte, 24)
	flags := uint64(a.openFlags())
	mode := uint64(a.mode())
	if flags&(unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY) == 0 && !a.yes(8) {
		mode = 0
	}
	var resolve uint64
	if a.yes(2) {
		resolve = 1 << a.IntN(6)
	}
	binary.NativeEndian.PutUint64(how, flags)
	binary.NativeEndian.PutUint64(how[8:], mode)
	binary.NativeEndian.PutUint64(how[16:], resolve)
	size := uintptr(24)
	if a.yes(20) {
		size = uintptr(a.IntN(30))
		how = append(how, make([]byte, 16)...)
	}
	a.took(raw(unix.SYS_OPENAT2, a.at(), a.path(), a.bytes(how), size))
}

// move changes the working directory.
func (a *actor) move() {
	if a.yes(3) {
		raw(unix.SYS_FCHDIR, a.fd())
		return
	}
	to := []string{"d1", "d2", "d1/d3", a.dir + "/", a.dir + "/d1", "."}[a.IntN(6)]
	raw(unix.SYS_CHDIR, a.bytes(append([]byte(to), 0)))
}

// throughRing makes a call by io_uring, and tells what its completion says.
func (a *actor) throughRing() {
	if a.ring == nil || a.threads {
		return
	}
	p := append([]byte(simpleNames[a.IntN(len(simpleNames))]), 0)
	at := a.bytes(p)
	e := uring.Entry{FD: unix.AT_FDCWD, Addr: uint64(at)}
	if a.yes(3) {
		e.Flags = uring.Async
	}
	a.tell(unix.AT_FDCWD, "cwd")
	name := string(p[:len(p)-1])
	switch a.IntN(4) {
	case 0:
		flags := uint32(unix.O_CREAT | unix.O_RDWR | unix.O_NONBLOCK)
		e.Op, e.OpFlags, e.Len = uring.Openat, flags, 0o600
		r := a.ring.Do(e)
		dir := unix.AT_FDCWD
		if r >= 0 {
			dir = int(r)
		}
		a.tell(dir, "ring:1:"+strconv.FormatInt(r, 10)+":"+name)
		if r >= 0 {
			raw(unix.SYS_CLOSE, uintptr(r))
		}
		return
	case 1:
		e.Op = uring.Unlinkat
		a.tell(unix.AT_FDCWD, "ring:211:"+strconv.FormatInt(a.ring.Do(e), 10)+":"+name)
	case 2:
		e.Op, e.Len = uring.Mkdirat, 0o700
		a.tell(unix.AT_FDCWD, "ring:219:"+strconv.FormatInt(a.ring.Do(e), 10)+":"+name)
	case 3:
		e.Op = uring.Symlinkat
		e.Addr, e.Off = uint64(a.bytes([]byte("target\x00"))), uint64(at)
		a.tell(unix.AT_FDCWD, "ring:217:"+strconv.FormatInt(a.ring.Do(e), 10)+":"+name)
	}
}
