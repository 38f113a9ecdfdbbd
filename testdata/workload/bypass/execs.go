//go:build linux

package main

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

var execs = []attempt{
	{"exec-direct", "exec", nil, func(p *place) error { return runs(p.secret("prog")) }},
	{"exec-symlink", "exec", func(p *place) { check(unix.Symlink(p.secret("prog"), p.open("symlink"))) },
		func(p *place) error { return runs(p.open("symlink")) }},
	{"exec-dotdot", "exec", nil, func(p *place) error { return runs(p.top + "/open/../" + p.below("prog")) }},
	{"exec-proc-root", "exec", nil, func(p *place) error { return runs("/proc/self/root" + p.secret("prog")) }},
	{"exec-proc-fd", "exec", nil, func(p *place) error {
		fd, err := opath(p.secret("prog"))
		if err != nil {
			return hide(err)
		}
		defer unix.Close(fd)
		return runs(fmt.Sprintf("/proc/%d/fd/%d", unix.Getpid(), fd))
	}},
	{"exec-descriptor", "exec", nil, execDescriptor},
	{"exec-script", "exec", scriptBefore, func(p *place) error { return runs(p.secret("script")) }},
	{"exec-shebang", "exec", shebangBefore, func(p *place) error { return runs(p.open("script")) }},
	{"exec-elf-interpreter", "exec", interpBefore, func(p *place) error { return runs(p.open("dynamic")) }},
	{"exec-link-made-before", "exec", func(p *place) { check(unix.Link(p.noexec("prog"), p.open("before"))) },
		func(p *place) error { return runs(p.open("before")) }},
	{"exec-link-made-during", "exec", nil, func(p *place) error {
		return first(func() error { return unix.Link(p.noexec("prog"), p.open("during")) }, func() error { return runs(p.open("during")) })
	}},
	{"exec-renamed", "exec", nil, func(p *place) error {
		return first(func() error { return unix.Rename(p.noexec("prog"), p.open("out")) }, func() error { return runs(p.open("out")) })
	}},
	{"exec-bind-made-during", "exec", nil, func(p *place) error {
		return first(ownMounts, func() error { return bind(p.noexec(""), p.open("dir")) }, func() error { return runs(p.open("dir/prog")) })
	}},
	{"exec-chroot", "exec", nil, func(p *place) error {
		return first(func() error { return hidden(unix.Chroot(p.noexec(""))) }, func() error { return runs("/prog") })
	}},
	{"exec-copy", "exec", nil, func(p *place) error {
		fd, err := unix.Open(p.open("copy"), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o755)
		if err != nil {
			return hide(err)
		}
		if err := copyTo(fd, p.noexec("prog")); err != nil {
			return hide(err)
		}
		unix.Close(fd)
		return runs(p.open("copy"))
	}},
	{"exec-memory", "exec", nil, func(p *place) error {
		fd, err := unix.MemfdCreate("M-bypass", unix.MFD_CLOEXEC)
		if err != nil {
			return hide(err)
		}
		defer unix.Close(fd)
		if err := copyTo(fd, p.noexec("prog")); err != nil {
			return hide(err)
		}
		return runs(fmt.Sprintf("/proc/%d/fd/%d", unix.Getpid(), fd))
	}},
	{"exec-mapped", "exec", nil, func(p *place) error {
		fd, err := unix.Open(p.noexec("prog"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return hide(err)
		}
		defer unix.Close(fd)
		b, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
		if err == nil {
			unix.Munmap(b)
		}
		return err
	}},
}

// execDescriptor executes by descriptor, in a child: execveat with an empty path.
func execDescriptor(p *place) error {
	fd, err := unix.Open(p.secret("prog"), unix.O_PATH, 0) // the child inherits it
	if err != nil {
		return hide(err)
	}
	defer unix.Close(fd)
	empty, argv := [1]byte{}, [2]uintptr{uintptr(unsafe.Pointer(&[]byte("prog\x00")[0])), 0}
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return hide(errno)
	}
	if pid == 0 {
		_, _, errno = syscall.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])), uintptr(unsafe.Pointer(&argv[0])), 0, unix.AT_EMPTY_PATH, 0)
		for {
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
		}
	}
	var ws syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(int(pid), &ws, 0, nil); err != syscall.EINTR {
			break
		}
	}
	if ws.ExitStatus() != 0 {
		return syscall.Errno(ws.ExitStatus())
	}
	return nil
}
