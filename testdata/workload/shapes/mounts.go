//go:build linux

package main

import (
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// openMade opens and prints; value is the path that the record must have.
func openMade(op string, dirfd int, path, value string, flags, mode uint64) int {
	r := made.Call(unix.SYS_OPENAT, uintptr(dirfd), made.Str(path), uintptr(flags), uintptr(mode))
	made.Line(op, 1, value, r, made.Flags(flags, mode))
	return int(r)
}

const atCwd = -100

// overlay: names in an overlay are those of the overlay, not of its layers.
func overlay() {
	for _, d := range []string{"M-lower", "M-upper", "M-work", "M-merged"} {
		mkdir(d)
	}
	unix.Close(openMade("setup", atCwd, at("M-lower/M-low"), at("M-lower/M-low"), create, 0o644))
	s := made.Str
	open := func(name string, flags, mode uintptr) step {
		return call(unix.SYS_OPENAT, cwd, s(at("M-merged/"+name)), flags, mode)
	}
	pid := fork(script{
		call(unix.SYS_UNSHARE, unix.CLONE_NEWNS),
		call(unix.SYS_MOUNT, s("none"), s("/"), s(""), unix.MS_REC|unix.MS_PRIVATE),
		call(unix.SYS_MOUNT, s("M-overlay"), s(at("M-merged")), s("overlay"), 0,
			s(fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", at("M-lower"), at("M-upper"), at("M-work")))),
		open("M-low", unix.O_RDONLY, 0),
		open("M-low", unix.O_RDWR, 0), // is copied up
		open("M-new", create, 0o644),
		call(unix.SYS_UNLINKAT, cwd, s(at("M-merged/M-low")), 0), // leaves a whiteout
	})
	if st := wait(pid); st != 0 {
		made.Must("overlay", -int64(st))
	}
	for _, v := range []struct {
		typ   int
		value string
	}{{224, "/"}, {225, "none"}, {224, at("M-merged")}, {225, "M-overlay"}, {211, at("M-merged/M-low")}} {
		made.Line("overlay", v.typ, v.value, 0, made.By(pid))
	}
	for _, v := range []struct {
		name        string
		flags, mode uint64
	}{{"M-low", unix.O_RDONLY, 0}, {"M-low", unix.O_RDWR, 0}, {"M-new", create, 0o644}} {
		made.Line("overlay", 1, at("M-merged/"+v.name), 0, made.By(pid), made.NoRet(), made.Flags(v.flags, v.mode))
	}
}

// ancestors: a directory above the opened file was renamed, or does not exist any more.
func ancestors() {
	const rd = unix.O_RDONLY
	c := uintptr(cwd)
	for _, d := range []string{"M-old", "M-old/M-in", "M-gone", "M-gone/M-in"} {
		mkdir(d)
	}
	sub := openMade("setup", atCwd, at("M-old/M-in"), at("M-old/M-in"), rd|unix.O_DIRECTORY, 0)
	r := made.Call(unix.SYS_RENAMEAT2, c, made.Str(at("M-old")), c, made.Str(at("M-new")), 0)
	made.Line("setup", 213, at("M-old"), r)
	made.Line("setup", 214, at("M-new"), r)
	unix.Close(openMade("renamed-ancestor", sub, "M-file", at("M-new/M-in/M-file"), create, 0o644))
	openMade("renamed-ancestor-enoent", sub, "M-none", at("M-new/M-in/M-none"), rd, 0)
	unix.Close(sub)

	sub = openMade("setup", atCwd, at("M-gone/M-in"), at("M-gone/M-in"), rd|unix.O_DIRECTORY, 0)
	file := openMade("setup", sub, "M-file", at("M-gone/M-in/M-file"), create, 0o644)
	remove := func(typ int, name string, flags uintptr) {
		made.Line("setup", typ, at(name), made.Call(unix.SYS_UNLINKAT, c, made.Str(at(name)), flags))
	}
	remove(211, "M-gone/M-in/M-file", 0)
	remove(212, "M-gone/M-in", unix.AT_REMOVEDIR)
	remove(212, "M-gone", unix.AT_REMOVEDIR)
	unix.Close(openMade("deleted-ancestor", atCwd, fmt.Sprintf("/proc/self/fd/%d", file), at("M-gone/M-in/M-file"), rd, 0))
	unix.Close(openMade("deleted-directory", sub, ".", at("M-gone/M-in"), rd|unix.O_DIRECTORY, 0))
	openMade("deleted-ancestor-enoent", sub, "M-none", at("M-gone/M-in/M-none"), rd, 0)
	unix.Close(file)
	unix.Close(sub)
}

// detached: files of mounts that are mounted nowhere. Their paths say so.
func detached() {
	const prefix = "detached:"
	runtime.LockOSThread()
	mkdir("M-tree")
	unix.Close(openMade("setup", atCwd, at("M-tree/M-file"), at("M-tree/M-file"), create, 0o644))
	tree, err := unix.OpenTree(atCwd, at("M-tree"), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	made.Line("open_tree", 235, at("M-tree"), 0, made.NoRet())
	if err != nil {
		made.Skipped("detached mounts", err)
		return
	}
	inside := prefix + at("M-tree")
	if top := mountPoint(dir); top != "/" { // the path in the file system, not in the mount tree
		inside = prefix + strings.TrimPrefix(at("M-tree"), top)
	}
	unix.Close(openMade("open_tree", tree, "M-file", inside+"/M-file", unix.O_RDONLY, 0))
	openMade("open_tree-enoent", tree, "M-none", inside+"/M-none", unix.O_RDONLY, 0)
	unix.Close(tree)

	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	made.Must("fsopen", made.Ret(err))
	made.Must("fsconfig", made.Ret(unix.FsconfigCreate(fs)))
	made.Line("fsconfig", 237, "tmpfs", 0)
	mnt, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	made.Must("fsmount", made.Ret(err))
	made.Line("fsmount", 238, "none", int64(mnt))
	unix.Close(openMade("fsmount", mnt, "M-file", prefix+"/M-file", create, 0o644))
	openMade("fsmount-enoent", mnt, "M-none", prefix+"/M-none", unix.O_RDONLY, 0)
	unix.Close(mnt)
	unix.Close(fs)
}

// mountPoint is where the file system of a folder is mounted.
func mountPoint(dir string) (point string) {
	lines("/proc/self/mountinfo", func(l string) {
		f := strings.Fields(l)
		if len(f) > 4 && len(f[4]) >= len(point) && (f[4] == "/" || dir == f[4] || strings.HasPrefix(dir, f[4]+"/")) {
			point = f[4]
		}
	})
	return point
}
