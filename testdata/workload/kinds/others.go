//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// others opens and names what has a way of its own: message queues, BPF objects, terminals,
// files for the kernel. Whoever may not, or has a kernel without them, asks all the same.
func others() {
	s := made.Str
	queue := "M-queue-" + filepath.Base(dir)
	fd := one("mq_open", 239, queue, unix.SYS_MQ_OPEN, s(queue), unix.O_CREAT|unix.O_RDWR, 0o600, 0)
	if fd >= 0 {
		unix.Close(int(fd))
	}
	one("mq_unlink", 241, queue, unix.SYS_MQ_UNLINK, s(queue))
	one("mq_unlink-enoent", 241, queue, unix.SYS_MQ_UNLINK, s(queue))

	const pin, get = 6, 7
	attr := struct {
		path      uint64
		fd, flags uint32
	}{path: uint64(s("M-pin")), fd: ^uint32(0)}
	one("bpf_obj_pin", 242, at("M-pin"), unix.SYS_BPF, pin, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	attr.fd = 0
	one("bpf_obj_get", 243, at("M-pin"), unix.SYS_BPF, get, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(&attr)

	one("acct", 244, at("M-none"), unix.SYS_ACCT, s("M-none"))
	one("swapon", 244, at("M-none"), unix.SYS_SWAPON, s("M-none"), 0)
	one("swapoff", 244, at("M-none"), unix.SYS_SWAPOFF, s("M-none"))
	terminal()
}

// terminal opens the second end of a terminal, by the first.
func terminal() {
	path, err := filepath.EvalSymlinks("/dev/ptmx")
	if _, none := os.Stat("/dev/pts/ptmx"); err != nil || none != nil { // no devpts is mounted
		made.Skipped("a terminal", unix.ENODEV)
		return
	}
	fd := openat("ptmx", cwd, path, path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if fd < 0 {
		made.Skipped("a terminal", unix.Errno(-fd))
		return
	}
	defer unix.Close(fd)
	made.Must("unlock a terminal", made.Ret(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)))
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	peer := made.Must("TIOCGPTPEER", made.Call(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, flags))
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", peer))
	made.Must("readlink", made.Ret(err))
	made.Line("ptmx-peer", 1, name, peer, made.Flags(flags, 0))
	unix.Close(int(peer))
}
