//go:build linux

package main

import (
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// mounts works in a mount namespace of one thread, which ends with its goroutine.
func mounts() {
	for _, d := range []string{"M-mnt", "M-src", "M-bind", "M-moved", "M-fs", "M-root"} {
		mkdir(d)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			made.Skipped("mount", err)
			return
		}
		mountLines()
	}()
	<-done
}

func mount(op, source, target, fstype string, flags uintptr) {
	r := made.Call(unix.SYS_MOUNT, made.Str(source), made.Str(target), made.Str(fstype), flags, 0)
	made.Line(op, 224, target, r)
	made.Line(op, 225, source, r)
}

func mountLines() {
	mount("mount-private", "none", "/", "", unix.MS_REC|unix.MS_PRIVATE)
	mount("mount-tmpfs", "M-tmpfs-source", at("M-mnt"), "tmpfs", 0)
	unix.Close(openat("openat-mounted", cwd, at("M-mnt/M-inside"), at("M-mnt/M-inside"), create, 0o644))
	mount("mount-bind", at("M-src"), at("M-bind"), "", unix.MS_BIND)
	unix.Close(openat("openat-bound", cwd, at("M-bind/M-bound"), at("M-bind/M-bound"), create, 0o644))
	mount("mount-fails", "M-none", at("M-no-such-dir"), "tmpfs", 0)
	one("umount2", 226, at("M-mnt"), unix.SYS_UMOUNT2, made.Str(at("M-mnt")), unix.MNT_DETACH)

	newMounts()
	fd := one("open_tree-clone", 235, at("M-bind"), unix.SYS_OPEN_TREE, fdArg(cwd), made.Str(at("M-bind")), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if fd < 0 {
		made.Skipped("move_mount", unix.Errno(-fd))
		return
	}
	r := made.Call(unix.SYS_MOVE_MOUNT, uintptr(fd), made.Str(""), fdArg(cwd), made.Str(at("M-moved")), unix.MOVE_MOUNT_F_EMPTY_PATH)
	made.Line("move_mount", 227, "", r, made.AnyValue())
	made.Line("move_mount", 228, at("M-moved"), r)
	unix.Close(int(fd))

	mount("mount-new-root", at("M-root"), at("M-root"), "", unix.MS_BIND)
	one("mkdir-put-old", 219, at("M-root/M-old"), unix.SYS_MKDIRAT, fdArg(cwd), made.Str(at("M-root/M-old")), 0o755)
	two("pivot_root", 229, 230, at("M-root"), at("M-root/M-old"), unix.SYS_PIVOT_ROOT, made.Str(at("M-root")), made.Str(at("M-root/M-old")))
}
