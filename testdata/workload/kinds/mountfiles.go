//go:build linux

package main

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// newMounts makes and changes a mount by the calls that have descriptors for mounts.
func newMounts() {
	const source = "M-fs-source"
	s, c, place := made.Str, fdArg(cwd), at("M-fs")
	fd := made.Call(unix.SYS_FSOPEN, s("tmpfs"), 0)
	if fd < 0 {
		made.Skipped("fsopen", unix.Errno(-fd))
		return
	}
	made.Must("fsconfig", made.Call(unix.SYS_FSCONFIG, uintptr(fd), unix.FSCONFIG_SET_STRING, s("source"), s(source), 0))
	made.Must("fsconfig", one("fsconfig", 237, "tmpfs", unix.SYS_FSCONFIG, uintptr(fd), unix.FSCONFIG_CMD_CREATE, 0, 0, 0))
	mnt := made.Must("fsmount", one("fsmount", 238, source, unix.SYS_FSMOUNT, uintptr(fd), 0, 0))
	r := made.Call(unix.SYS_MOVE_MOUNT, uintptr(mnt), s(""), c, s(place), unix.MOVE_MOUNT_F_EMPTY_PATH)
	made.Line("move_mount-new", 227, "", r, made.AnyValue())
	made.Line("move_mount-new", 228, place, r)
	unix.Close(int(mnt))
	unix.Close(int(fd))

	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV}
	p, size := uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr)
	one("mount_setattr", 234, place, unix.SYS_MOUNT_SETATTR, c, s(place), 0, p, size)
	fd = one("fspick", 236, place, unix.SYS_FSPICK, c, s("M-fs"), 0)
	one("fsconfig-again", 237, "tmpfs", unix.SYS_FSCONFIG, uintptr(made.Must("fspick", fd)), unix.FSCONFIG_CMD_RECONFIGURE, 0, 0, 0)
	unix.Close(int(fd))
	for _, fd := range []int64{
		one("open_tree", 235, place, unix.SYS_OPEN_TREE, c, s("M-fs"), unix.OPEN_TREE_CLOEXEC),
		one("open_tree_attr", 234, place, unix.SYS_OPEN_TREE_ATTR, c, s(place), unix.OPEN_TREE_CLONE, p, size),
		one("open_tree_attr-none", 235, place, unix.SYS_OPEN_TREE_ATTR, c, s(place), 0, 0, 0),
	} {
		if fd >= 0 {
			unix.Close(int(fd))
		}
	}
	runtime.KeepAlive(&attr)
}
