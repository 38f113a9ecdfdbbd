//go:build linux && (amd64 || 386 || arm)

package main

import (
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// The calls without a directory argument, which newer architectures do not have.

func oldOpens() {
	r := made.Call(unix.SYS_OPEN, made.Str(at("M-open")), create|unix.O_EXCL, 0o640)
	made.Line("open", 1, at("M-open"), r, made.Flags(create|unix.O_EXCL, 0o640))
	unix.Close(int(r))
	r = made.Call(unix.SYS_CREAT, made.Str(at("M-creat")), 0o600)
	made.Line("creat", 1, at("M-creat"), r, made.Flags(unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, 0o600))
	unix.Close(int(r))

}

func oldTree() {
	s := made.Str
	file("M-unlink", 0o644)
	one("unlink", 211, at("M-unlink"), unix.SYS_UNLINK, s(at("M-unlink")))
	one("unlink-enoent", 211, at("M-unlink"), unix.SYS_UNLINK, s("M-unlink"))
	one("mkdir", 219, at("M-mkdir"), unix.SYS_MKDIR, s(at("M-mkdir")), 0o750)
	one("mkdir-eexist", 219, at("M-mkdir"), unix.SYS_MKDIR, s(at("M-mkdir")), 0o750)
	mkdir("M-mkdir/M-full")
	one("rmdir-enotempty", 212, at("M-mkdir"), unix.SYS_RMDIR, s("M-mkdir"))
	one("rmdir", 212, at("M-mkdir/M-full"), unix.SYS_RMDIR, s(at("M-mkdir/M-full")))

	file("M-ren-a", 0o644)
	two("rename", 213, 214, at("M-ren-a"), at("M-ren-b"), unix.SYS_RENAME, s(at("M-ren-a")), s("M-ren-b"))
	two("rename-enoent", 213, 214, at("M-ren-a"), at("M-ren-z"), unix.SYS_RENAME, s(at("M-ren-a")), s(at("M-ren-z")))
	two("link", 215, 216, at("M-ren-b"), at("M-link"), unix.SYS_LINK, s(at("M-ren-b")), s(at("M-link")))
	two("link-eexist", 215, 216, at("M-ren-b"), at("M-link"), unix.SYS_LINK, s(at("M-ren-b")), s(at("M-link")))
	one("symlink", 217, at("M-symlink"), unix.SYS_SYMLINK, s("M-target"), s(at("M-symlink")))
	one("mknod", 223, at("M-fifo"), unix.SYS_MKNOD, s(at("M-fifo")), unix.S_IFIFO|0o600, 0)
}

func oldAttrs(p string, uid, gid uintptr) {
	s := made.Str
	one("chmod", 221, p, unix.SYS_CHMOD, s(p), 0o600)
	one("chown", 222, p, unix.SYS_CHOWN, s(p), uid, gid)
	one("lchown", 222, p, unix.SYS_LCHOWN, s(p), uid, gid)
	one("chmod-enoent", 221, at("M-attr-none"), unix.SYS_CHMOD, s("M-attr-none"), 0o600)
}
