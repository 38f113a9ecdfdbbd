//go:build linux

package main

import (
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
	"github.com/runner-evidence/runner/testdata/workload/uring"
)

// ring opens and connects through io_uring, inline and in a worker.
func ring() {
	u, err := uring.New()
	if err != nil {
		made.Skipped("io_uring", err)
		return
	}
	defer unix.Close(u.FD)
	// io_uring sets O_LARGEFILE and clears the mode of an open that creates nothing,
	// before a probe sees it. With the same values here, the test can compare them.
	for _, v := range []struct {
		name       string
		flags      uint8
		open, mode uint32
	}{{"M-ring", 0, create | largeFile, 0o640}, {"M-ring-async", uring.Async, create | largeFile, 0o640},
		{"M-ring-enoent", 0, largeFile, 0}} {
		r := u.Do(uring.Entry{Op: uring.Openat, Flags: v.flags, FD: cwd, Addr: uint64(made.Str(v.name)), Len: v.mode, OpFlags: v.open})
		made.Line("io_uring_openat", 1, at(v.name), r, made.Flags(uint64(v.open), uint64(v.mode)))
		if r >= 0 {
			unix.Close(int(r))
		}
	}
	how := unix.OpenHow{Flags: uint64(create | largeFile), Mode: 0o620, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	r := u.Do(uring.Entry{Op: uring.Openat2, FD: cwd, Addr: uint64(made.Str(at("M-ring2"))), Len: unix.SizeofOpenHow, Off: uint64(uintptr(unsafe.Pointer(&how)))})
	runtime.KeepAlive(&how)
	made.Line("io_uring_openat2", 1, at("M-ring2"), r, made.Flags(uint64(create|largeFile), 0o620), made.Resolve(unix.RESOLVE_NO_MAGICLINKS))
	unix.Close(int(r))

	addr, stop := listen4("ring")
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	made.Must("socket", made.Ret(err))
	sa := inet4(addr)
	r = u.Do(uring.Entry{Op: uring.Connect, FD: int32(fd), Addr: uint64(uintptr(unsafe.Pointer(&sa))), Off: unix.SizeofSockaddrInet4})
	runtime.KeepAlive(&sa)
	made.Line("io_uring_connect", 2, text4(addr), r)
	unix.Close(fd)
	stop()
	ringLater(u)
	ringTree(u)
	ringFiles(u)
}

// ringFiles makes requests for descriptors. Where the kernel has no such request, each fails.
func ringFiles(u *uring.Ring) {
	fd := openat("setup", cwd, at("M-ring-cut"), at("M-ring-cut"), create, 0o644)
	made.Line("io_uring_ftruncate", 220, at("M-ring-cut"), u.Do(uring.Entry{Op: uring.Ftruncate, FD: int32(fd), Off: 23}))
	unix.Close(fd)
	name := "@M-ring-listen-" + filepath.Base(dir)
	l, sa := socket(unix.AF_UNIX, unix.SOCK_STREAM), rawUnix(name)
	r := u.Do(uring.Entry{Op: uring.Bind, FD: int32(l), Addr: uint64(uintptr(unsafe.Pointer(&sa[0]))), Off: uint64(len(sa))})
	runtime.KeepAlive(sa)
	made.Line("io_uring_bind", 203, "unix:"+name, r)
	r = u.Do(uring.Entry{Op: uring.Listen, FD: int32(l)})
	if r < 0 {
		made.Line("io_uring_listen", 204, "", r, made.Null())
	} else {
		made.Line("io_uring_listen", 204, "unix:"+name, r)
	}
	unix.Close(l)
}

// ringLater connects through io_uring where the other side has no room yet, and makes calls
// before that completes.
func ringLater(u *uring.Ring) {
	name := "@M-ring-" + filepath.Base(dir)
	value := "unix:" + name
	l := socket(unix.AF_UNIX, unix.SOCK_STREAM)
	withAddr("ring-bind", 203, unix.SYS_BIND, l, rawUnix(name), value)
	made.Line("ring-listen", 204, value, made.Call(unix.SYS_LISTEN, uintptr(l), 0))
	connect("ring-connect-first", unix.AF_UNIX, unix.SOCK_STREAM, rawUnix(name), value)
	fd, sa := socket(unix.AF_UNIX, unix.SOCK_STREAM), rawUnix(name)
	u.Submit(uring.Entry{Op: uring.Connect, FD: int32(fd), Addr: uint64(uintptr(unsafe.Pointer(&sa[0]))), Off: uint64(len(sa))})
	file("M-ring-meanwhile", 0o644)
	connect("ring-connect-meanwhile", unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, rawUnix(name+"-none"), value+"-none")
	unix.Accept(l)
	made.Line("io_uring_connect-later", 2, value, u.Wait())
	runtime.KeepAlive(sa)
	unix.Close(fd)
	unix.Close(l)
}

// ringOther asks for an io_uring operation that no kernel has.
func ringOther() {
	u, err := uring.New()
	if err != nil {
		made.Skipped("io_uring_other", err)
		return
	}
	defer unix.Close(u.FD)
	made.Line("io_uring_other", 240, "", u.Do(uring.Entry{Op: 250}), made.Null())
}

// tree changes names through io_uring.
func ringTree(u *uring.Ring) {
	s := func(name string) uint64 { return uint64(made.Str(name)) }
	both := func(from, to string) (uint64, uint32, uint64) { return s(from), uint32(cwd + 1<<32), s(to) }
	made.Line("io_uring_mkdirat", 219, at("M-ring-dir"), u.Do(uring.Entry{Op: uring.Mkdirat, FD: cwd, Addr: s("M-ring-dir"), Len: 0o755}))
	a, fd, b := both("M-ring", "M-ring-renamed")
	r := u.Do(uring.Entry{Op: uring.Renameat, FD: cwd, Addr: a, Len: fd, Off: b})
	made.Line("io_uring_renameat", 213, at("M-ring"), r)
	made.Line("io_uring_renameat", 214, at("M-ring-renamed"), r)
	a, fd, b = both("M-ring-renamed", "M-ring-linked")
	r = u.Do(uring.Entry{Op: uring.Linkat, FD: cwd, Addr: a, Len: fd, Off: b})
	made.Line("io_uring_linkat", 215, at("M-ring-renamed"), r)
	made.Line("io_uring_linkat", 216, at("M-ring-linked"), r)
	r = u.Do(uring.Entry{Op: uring.Symlinkat, FD: cwd, Addr: s("M-target"), Off: s("M-ring-symlink")})
	made.Line("io_uring_symlinkat", 217, at("M-ring-symlink"), r)
	r = u.Do(uring.Entry{Op: uring.Unlinkat, FD: cwd, Addr: s("M-ring-linked")})
	made.Line("io_uring_unlinkat", 211, at("M-ring-linked"), r)
	r = u.Do(uring.Entry{Op: uring.Unlinkat, FD: cwd, Addr: s("M-ring-dir"), OpFlags: unix.AT_REMOVEDIR})
	made.Line("io_uring_unlinkat", 212, at("M-ring-dir"), r)
	r = u.Do(uring.Entry{Op: uring.Unlinkat, FD: cwd, Addr: s("M-ring-dir")})
	made.Line("io_uring_unlinkat-enoent", 211, at("M-ring-dir"), r)
}
