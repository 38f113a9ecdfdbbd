//go:build linux

// Command forbidden tries what a program in a box must not be able to do, and prints what became of each try.
package main

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	try := func(name string, number uintptr, args ...uintptr) {
		args = append(args, 0, 0, 0, 0, 0, 0)
		_, _, errno := syscall.Syscall6(number, args[0], args[1], args[2], args[3], args[4], args[5])
		fmt.Println(name, unix.ErrnoName(errno))
	}
	try("bpf", unix.SYS_BPF)
	try("io_uring_setup", unix.SYS_IO_URING_SETUP)
	try("add_key", unix.SYS_ADD_KEY)
	try("keyctl", unix.SYS_KEYCTL)
	try("request_key", unix.SYS_REQUEST_KEY)
	try("mount", unix.SYS_MOUNT)
	try("umount2", unix.SYS_UMOUNT2)
	try("move_mount", unix.SYS_MOVE_MOUNT)
	try("open_tree", unix.SYS_OPEN_TREE)
	try("fsopen", unix.SYS_FSOPEN)
	try("mount_setattr", unix.SYS_MOUNT_SETATTR)
	try("pivot_root", unix.SYS_PIVOT_ROOT)
	try("setns", unix.SYS_SETNS)
	try("open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT)
	try("unshare user", unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	try("unshare mount", unix.SYS_UNSHARE, unix.CLONE_NEWNS)
	try("clone user", unix.SYS_CLONE, unix.CLONE_NEWUSER)
	try("chroot", unix.SYS_CHROOT, uintptr(0))
	for _, number := range []uintptr{unix.SYS_KILL, unix.SYS_TKILL} {
		try("kill process 1", number, 1, uintptr(unix.SIGTERM))
	}
	for _, name := range []string{"/etc/made", "/made", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/dev/made"} {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
		if err == nil {
			f.Close()
		}
		fmt.Println(name, err != nil)
	}
	_, err := os.ReadFile("/proc/1/environ")
	fmt.Println("read process 1", err != nil)
	err = os.Chmod("/etc", 0o700)
	fmt.Println("chmod /etc", err != nil)
	err = unix.Mknod("device", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))
	fmt.Println("mknod", err != nil)
}
