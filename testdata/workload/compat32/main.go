//go:build linux && 386

// Compat32 makes its calls through the 32-bit entry of a 64-bit kernel, which has other
// call numbers: open is 5, which is fstat in the 64-bit table.
package main

import (
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "_nop" {
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "_sends" {
		sends()
		return
	}
	if len(os.Args) != 2 || !strings.HasPrefix(os.Args[1], "/") {
		os.Stderr.WriteString("usage: compat32 ABSOLUTE-DIR\n")
		os.Exit(2)
	}
	dir := os.Args[1]
	made.Must("chdir", made.Ret(os.Chdir(dir)))
	at := func(n string) string { return dir + "/" + n }
	s := made.Str
	const create = unix.O_CREAT | unix.O_RDWR
	const cwd = ^uintptr(99)

	open := func(op, value string, flags, mode uint64, nr uintptr, a ...uintptr) {
		r := made.Call(nr, a...)
		made.Line(op, 1, value, r, made.Flags(flags, mode))
		if r >= 0 {
			unix.Close(int(r))
		}
	}
	open("open32", at("M-open32"), create, 0o640, unix.SYS_OPEN, s(at("M-open32")), create, 0o640)
	open("creat32", at("M-creat32"), unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, 0o600, unix.SYS_CREAT, s(at("M-creat32")), 0o600)
	open("openat32", at("M-openat32"), create, 0o644, unix.SYS_OPENAT, cwd, s("M-openat32"), create, 0o644)
	open("enoent32", at("M-none32"), 0, 0, unix.SYS_OPEN, s("M-none32"), 0, 0)
	how := unix.OpenHow{Flags: create, Mode: 0o604}
	open("openat2-32", at("M-openat2-32"), create, 0o604, unix.SYS_OPENAT2, cwd, s("M-openat2-32"), uintptr(unsafe.Pointer(&how)), unix.SizeofOpenHow)
	runtime.KeepAlive(&how)

	sa := append([]byte{unix.AF_UNIX, 0}, at("M-none-sock32")+"\x00"...)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	made.Must("socket", made.Ret(err))
	r := made.Call(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&sa[0])), uintptr(len(sa)))
	made.Line("connect32", 2, "unix:"+at("M-none-sock32"), r)
	args := [3]uintptr{uintptr(fd), uintptr(unsafe.Pointer(&sa[0])), uintptr(len(sa))}
	const socketcallConnect = 3
	r = made.Call(unix.SYS_SOCKETCALL, socketcallConnect, uintptr(unsafe.Pointer(&args)))
	made.Line("socketcall32", 2, "unix:"+at("M-none-sock32"), r)
	runtime.KeepAlive(sa)

	line := func(op string, typ int, value string, nr uintptr, a ...uintptr) {
		made.Line(op, typ, value, made.Call(nr, a...))
	}
	line("mkdir32", 219, at("M-dir32"), unix.SYS_MKDIR, s(at("M-dir32")), 0o755)
	line("rmdir32", 212, at("M-dir32"), unix.SYS_RMDIR, s("M-dir32"))
	line("unlink32", 211, at("M-creat32"), unix.SYS_UNLINK, s("M-creat32"))
	r = made.Call(unix.SYS_EXECVE, s(at("M-no-exec32")), 0, 0)
	made.Line("execve32", 201, at("M-no-exec32"), r)
}

// sends has an IPv6 socket that is connected to port 9 of 127.0.0.1 send to its peer without a name, by write and by sendto, each
// time before a send to port 0 of ::1, which is refused.
func sends() {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0)
	made.Must("socket", made.Ret(err))
	peer := []byte{0: unix.AF_INET6, 3: 9, 18: 255, 19: 255, 20: 127, 23: 1, 27: 0}
	none := []byte{0: unix.AF_INET6, 23: 1, 27: 0}
	data := []byte("x")
	address := func(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
	made.Must("connect", made.Call(unix.SYS_CONNECT, uintptr(fd), address(peer), uintptr(len(peer))))
	made.Call(unix.SYS_WRITE, uintptr(fd), address(data), 1)
	made.Call(unix.SYS_SENDTO, uintptr(fd), address(data), 1, 0, address(none), uintptr(len(none)))
	made.Call(unix.SYS_SENDTO, uintptr(fd), address(data), 1, 0, 0, 0)
	made.Call(unix.SYS_SENDTO, uintptr(fd), address(data), 1, 0, address(none), uintptr(len(none)))
	runtime.KeepAlive([][]byte{peer, none, data})
}
