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
	oldTree()
	file("M-unlinkat", 0o644)
	one("unlinkat", 211, at("M-unlinkat"), unix.SYS_UNLINKAT, c, s("M-unlinkat"), 0)
	one("unlinkat-enoent", 211, at("M-unlinkat"), unix.SYS_UNLINKAT, c, s("M-unlinkat"), 0)
	mkdir("M-dir")
	one("mkdirat", 219, at("M-dir/M-mkdirat"), unix.SYS_MKDIRAT, c, s("M-dir/M-mkdirat"), 0o750)
	one("mkdirat-eexist", 219, at("M-dir/M-mkdirat"), unix.SYS_MKDIRAT, c, s(at("M-dir/M-mkdirat")), 0o750)
	one("unlinkat-enotempty", 212, at("M-dir"), unix.SYS_UNLINKAT, c, s("M-dir"), unix.AT_REMOVEDIR)
	one("unlinkat-removedir", 212, at("M-dir/M-mkdirat"), unix.SYS_UNLINKAT, c, s("M-dir/M-mkdirat"), unix.AT_REMOVEDIR)

	file("M-renat-a", 0o644)
	two("renameat", 213, 214, at("M-renat-a"), at("M-renat-b"), unix.SYS_RENAMEAT, c, s("M-renat-a"), c, s(at("M-renat-b")))
	two("renameat2", 213, 214, at("M-renat-b"), at("M-renat-c"), unix.SYS_RENAMEAT2, c, s("M-renat-b"), c, s("M-renat-c"), unix.RENAME_NOREPLACE)
	two("renameat-enoent", 213, 214, at("M-renat-a"), at("M-renat-z"), unix.SYS_RENAMEAT, c, s("M-renat-a"), c, s(at("M-renat-z")))
	two("linkat", 215, 216, at("M-renat-c"), at("M-linkat"), unix.SYS_LINKAT, c, s("M-renat-c"), c, s("M-linkat"), 0)
	two("linkat-eexist", 215, 216, at("M-renat-c"), at("M-linkat"), unix.SYS_LINKAT, c, s("M-renat-c"), c, s("M-linkat"), 0)
	one("symlinkat", 217, at("M-symlinkat"), unix.SYS_SYMLINKAT, s("M-target"), c, s("M-symlinkat"))
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
	oldAttrs(p, uid, gid)
	one("fchmod", 221, p, unix.SYS_FCHMOD, uintptr(fd), 0o640)
	one("fchmodat", 221, p, unix.SYS_FCHMODAT, c, s(name), 0o644)
	one("fchmodat2", 221, p, unix.SYS_FCHMODAT2, c, s(name), 0o600, 0) // a kernel without it is asked too
	one("fchown", 222, p, unix.SYS_FCHOWN, uintptr(fd), uid, gid)
	one("fchownat", 222, p, unix.SYS_FCHOWNAT, c, s(name), uid, gid, 0)
	one("fchmodat-enoent", 221, at("M-attr-none"), unix.SYS_FCHMODAT, c, s("M-attr-none"), 0o600)
	unix.Close(fd)
}
