//go:build linux

package main

import (
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// one makes a call on one path and prints the line.
func one(op string, typ int, value string, nr uintptr, a ...uintptr) int64 {
	r := made.Call(nr, a...)
	made.Line(op, typ, value, r)
	return r
}

// two makes a call on two paths, which makes two lines.
func two(op string, from, to int, a, b string, nr uintptr, args ...uintptr) {
	r := made.Call(nr, args...)
	made.Line(op, from, a, r)
	made.Line(op, to, b, r)
}

// tree makes and removes names.
func tree() {
	c, s := fdArg(cwd), made.Str
	file("M-unlink", 0o644)
	one("unlink", 211, at("M-unlink"), unix.SYS_UNLINK, s(at("M-unlink")))
	one("unlink-enoent", 211, at("M-unlink"), unix.SYS_UNLINK, s("M-unlink"))
	file("M-unlinkat", 0o644)
	one("unlinkat", 211, at("M-unlinkat"), unix.SYS_UNLINKAT, c, s("M-unlinkat"), 0)
	one("mkdir", 219, at("M-mkdir"), unix.SYS_MKDIR, s(at("M-mkdir")), 0o750)
	one("mkdir-eexist", 219, at("M-mkdir"), unix.SYS_MKDIR, s(at("M-mkdir")), 0o750)
	one("mkdirat", 219, at("M-mkdir/M-mkdirat"), unix.SYS_MKDIRAT, c, s("M-mkdir/M-mkdirat"), 0o750)
	one("rmdir-enotempty", 212, at("M-mkdir"), unix.SYS_RMDIR, s("M-mkdir"))
	one("unlinkat-removedir", 212, at("M-mkdir/M-mkdirat"), unix.SYS_UNLINKAT, c, s("M-mkdir/M-mkdirat"), unix.AT_REMOVEDIR)
	one("rmdir", 212, at("M-mkdir"), unix.SYS_RMDIR, s(at("M-mkdir")))

	file("M-ren-a", 0o644)
	two("rename", 213, 214, at("M-ren-a"), at("M-ren-b"), unix.SYS_RENAME, s(at("M-ren-a")), s("M-ren-b"))
	two("renameat", 213, 214, at("M-ren-b"), at("M-ren-c"), unix.SYS_RENAMEAT, c, s("M-ren-b"), c, s(at("M-ren-c")))
	two("renameat2", 213, 214, at("M-ren-c"), at("M-ren-d"), unix.SYS_RENAMEAT2, c, s("M-ren-c"), c, s("M-ren-d"), unix.RENAME_NOREPLACE)
	two("rename-enoent", 213, 214, at("M-ren-a"), at("M-ren-z"), unix.SYS_RENAME, s(at("M-ren-a")), s(at("M-ren-z")))
	two("link", 215, 216, at("M-ren-d"), at("M-link"), unix.SYS_LINK, s(at("M-ren-d")), s(at("M-link")))
	two("linkat", 215, 216, at("M-ren-d"), at("M-linkat"), unix.SYS_LINKAT, c, s("M-ren-d"), c, s("M-linkat"), 0)
	two("link-eexist", 215, 216, at("M-ren-d"), at("M-link"), unix.SYS_LINK, s(at("M-ren-d")), s(at("M-link")))
	one("symlink", 217, at("M-symlink"), unix.SYS_SYMLINK, s("M-target"), s(at("M-symlink")))
	one("symlinkat", 217, at("M-symlinkat"), unix.SYS_SYMLINKAT, s("M-target"), c, s("M-symlinkat"))
	one("mknod", 223, at("M-fifo"), unix.SYS_MKNOD, s(at("M-fifo")), unix.S_IFIFO|0o600, 0)
	one("mknodat", 223, at("M-fifo-at"), unix.SYS_MKNODAT, c, s("M-fifo-at"), unix.S_IFIFO|0o600, 0)
}

// attrs changes existing files.
func attrs() {
	c, s := fdArg(cwd), made.Str
	uid, gid := uintptr(unix.Getuid()), uintptr(unix.Getgid())
	const name = "M-attr"
	p := at(name)
	fd := openat("setup", cwd, name, p, create, 0o644)
	one("truncate", 220, p, unix.SYS_TRUNCATE, s(p), 23)
	one("ftruncate", 220, p, unix.SYS_FTRUNCATE, uintptr(fd), 29)
	one("chmod", 221, p, unix.SYS_CHMOD, s(p), 0o600)
	one("fchmod", 221, p, unix.SYS_FCHMOD, uintptr(fd), 0o640)
	one("fchmodat", 221, p, unix.SYS_FCHMODAT, c, s(name), 0o644)
	r := made.Call(unix.SYS_FCHMODAT2, c, s(name), 0o600, 0)
	if r == -int64(unix.ENOSYS) {
		made.Skipped("fchmodat2", unix.ENOSYS)
	} else {
		made.Line("fchmodat2", 221, p, r)
	}
	one("chown", 222, p, unix.SYS_CHOWN, s(p), uid, gid)
	one("lchown", 222, p, unix.SYS_LCHOWN, s(name), uid, gid)
	one("fchown", 222, p, unix.SYS_FCHOWN, uintptr(fd), uid, gid)
	one("fchownat", 222, p, unix.SYS_FCHOWNAT, c, s(name), uid, gid, 0)
	one("chmod-enoent", 221, at("M-attr-none"), unix.SYS_CHMOD, s("M-attr-none"), 0o600)
	unix.Close(fd)
}
