//go:build linux

package main

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
	"github.com/runner-evidence/runner/testdata/workload/uring"
)

// rings opens one file and connects to a port that refuses, both through io_uring and by a
// call, N times.
func rings() {
	n := num(0, 1000)
	u, err := uring.New()
	if err != nil {
		made.Skipped("rings", err)
		return
	}
	path := made.Str(at("M-rings"))
	sa := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: 1 << 8, Addr: [4]byte{127, 0, 0, 1}}
	fd := int32(made.Must("socket", made.Call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0)))
	for range n {
		unix.Close(int(made.Must("openat", u.Do(uring.Entry{Op: uring.Openat, FD: -100, Addr: uint64(path), Len: 0o644, OpFlags: create}))))
		u.Do(uring.Entry{Op: uring.Connect, FD: fd, Addr: uint64(uintptr(unsafe.Pointer(&sa))), Off: unix.SizeofSockaddrInet4})
		made.Call(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&sa)), unix.SizeofSockaddrInet4)
	}
	runtime.KeepAlive(&sa)
	made.Line("rings", 1, at("M-rings"), 0, made.NoRet(), made.Times(n))
	made.Line("rings-connect", 2, "127.0.0.1:1", 0, made.NoRet(), made.Times(2*n))
}
