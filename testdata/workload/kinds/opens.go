//go:build linux

package main

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

const (
	create = unix.O_CREAT | unix.O_RDWR
	cwd    = -100 // AT_FDCWD, as a signed variable
)

func fdArg(fd int) uintptr { return uintptr(fd) }

// openat opens and prints. value is the resolved path.
func openat(op string, dirfd int, path, value string, flags, mode uint64, opts ...made.Option) int {
	r := made.Call(unix.SYS_OPENAT, fdArg(dirfd), made.Str(path), uintptr(flags), uintptr(mode))
	made.Line(op, 1, value, r, append([]made.Option{made.Flags(flags, mode)}, opts...)...)
	return int(r)
}

// file creates an empty file, closes it, and prints the open.
func file(name string, mode uint64) {
	unix.Close(openat("setup", cwd, at(name), at(name), create, mode))
}

func mkdir(name string) {
	made.Line("setup", 219, at(name), made.Must("mkdir", made.Call(unix.SYS_MKDIRAT, fdArg(cwd), made.Str(at(name)), 0o755)))
}

func symlink(target, name string) {
	made.Line("setup", 217, at(name), made.Must("symlink", made.Call(unix.SYS_SYMLINKAT, made.Str(target), fdArg(cwd), made.Str(at(name)))))
}

func opens() {
	oldOpens()
	unix.Close(openat("openat-absolute", cwd, at("M-openat-abs"), at("M-openat-abs"), create, 0o644))
	unix.Close(openat("openat-cwd", cwd, "M-openat-cwd", at("M-openat-cwd"), create, 0o644))
	unix.Close(openat("openat-append", cwd, "M-openat-cwd", at("M-openat-cwd"), unix.O_WRONLY|unix.O_APPEND, 0))
	mkdir("M-sub")
	sub := openat("openat-directory", cwd, "M-sub", at("M-sub"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	unix.Close(openat("openat-dirfd", sub, "M-openat-dirfd", at("M-sub/M-openat-dirfd"), create, 0o644))
	unix.Close(openat("openat-dotdot", sub, "../M-dotdot", at("M-dotdot"), create, 0o644))
	unix.Close(openat("openat-opath", sub, "M-openat-dirfd", at("M-sub/M-openat-dirfd"), unix.O_PATH, 0))
	symlink("M-sub", "M-link-dir")
	unix.Close(openat("openat-symlink", cwd, "M-link-dir/../M-sub/M-linked", at("M-sub/M-linked"), create, 0o644))
	symlink("M-sub/M-linked", "M-link-file")
	unix.Close(openat("openat-symlink-file", cwd, "M-link-file", at("M-sub/M-linked"), unix.O_RDONLY, 0))

	openat("openat-empty", cwd, "", dir, unix.O_RDONLY, 0)

	openat2("M-openat2", at("M-openat2"), create, 0o604, 0)
	openat2("M-sub/M-openat2-beneath", at("M-sub/M-openat2-beneath"), create, 0o604, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS)
	openat2("../M-openat2-exdev", at("../M-openat2-exdev"), create, 0o604, unix.RESOLVE_BENEATH)
	byHandle(sub)
	unix.Close(sub)
}

func openat2(path, value string, flags, mode, resolve uint64) {
	how := unix.OpenHow{Flags: flags, Mode: mode, Resolve: resolve}
	r := made.Call(unix.SYS_OPENAT2, fdArg(cwd), made.Str(path), uintptr(unsafe.Pointer(&how)), unix.SizeofOpenHow)
	runtime.KeepAlive(&how)
	opts := []made.Option{made.Flags(flags, mode)}
	if resolve != 0 {
		opts = append(opts, made.Resolve(resolve))
	}
	if r < 0 { // failed: only the text is known, with .. applied to the base
		value = parentOf(dir) + path[len(".."):]
	}
	made.Line("openat2", 1, value, r, opts...)
	if r >= 0 {
		unix.Close(int(r))
	}
}

func byHandle(mountFD int) {
	file("M-handle", 0o644)
	h, _, err := unix.NameToHandleAt(cwd, at("M-handle"), 0)
	if err != nil {
		made.Skipped("open_by_handle_at", err)
		return
	}
	fd, err := unix.OpenByHandleAt(mountFD, h, unix.O_RDONLY)
	if err != nil {
		made.Skipped("open_by_handle_at", err)
		return
	}
	made.Line("open_by_handle_at", 1, at("M-handle"), int64(fd))
	unix.Close(fd)
}

// failures makes opens that the kernel refuses: their path is only text.
func failures() {
	const rd = unix.O_RDONLY
	openat("enoent", cwd, at("M-enoent"), at("M-enoent"), rd, 0)
	openat("enoent-relative", cwd, "./M-enoent-rel/./x", at("M-enoent-rel/x"), rd, 0)
	mkdir("M-fsub")
	sub := openat("setup", cwd, "M-fsub", at("M-fsub"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	openat("enoent-dirfd", sub, "M-enoent-dirfd", at("M-fsub/M-enoent-dirfd"), rd, 0)
	openat("enoent-dotdot", sub, "../M-enoent-dotdot", at("M-enoent-dotdot"), rd, 0)
	openat("enoent-inner-dotdot", cwd, "M-nodir/../M-x", at("M-nodir/../M-x"), rd, 0)
	unix.Close(sub)
	symlink("M-loop", "M-loop")
	openat("eloop", cwd, "M-loop", at("M-loop"), rd, 0)
	symlink("M-enoent", "M-nofollow")
	openat("eloop-nofollow", cwd, "M-nofollow", at("M-nofollow"), rd|unix.O_NOFOLLOW, 0)
	file("M-eexist", 0o644)
	openat("eexist", cwd, "M-eexist", at("M-eexist"), create|unix.O_EXCL, 0o644)
	openat("enotdir", cwd, "M-eexist/M-x", at("M-eexist/M-x"), rd, 0)
	openat("ebadf", 999, "M-ebadf", "M-ebadf", rd, 0, made.AnyValue())
	r := made.Call(unix.SYS_OPENAT, fdArg(cwd), 8, rd, 0)
	made.Line("efault", 1, "", r, made.Null(), made.Flags(rd, 0))
	denied()
}

// denied opens a file of mode 0 without root's capabilities. Credentials belong to
// the thread, so the rest of this process keeps them.
func denied() {
	file("M-eacces", 0)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	root := os.Geteuid() == 0
	keep := ^uintptr(0)
	if root {
		made.Must("setresuid", made.Call(unix.SYS_SETRESUID, keep, 65534, keep))
	}
	openat("eacces", cwd, at("M-eacces"), at("M-eacces"), unix.O_RDONLY, 0)
	if root {
		made.Must("setresuid", made.Call(unix.SYS_SETRESUID, keep, 0, keep))
	}
}

func parentOf(p string) string {
	for i := len(p) - 1; i > 0; i-- {
		if p[i] == '/' {
			return p[:i]
		}
	}
	return ""
}
