//go:build linux

package main

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// attributes sets and removes extended attributes. A file system or a kernel without them is
// asked too.
func attributes() {
	const file, name = "M-xattr", "user.M-attribute"
	s, p, c := made.Str, at(file), fdArg(cwd)
	fd := openat("setup", cwd, file, p, create, 0o644)
	value := []byte("marked")
	args := struct {
		value       uint64
		size, flags uint32
	}{uint64(uintptr(unsafe.Pointer(&value[0]))), uint32(len(value)), 0}
	two := func(op string, typ int, path string, nr uintptr, a ...uintptr) {
		r := made.Call(nr, a...)
		made.Line(op, typ, path, r)
		made.Line(op, 232, name, r)
	}
	data, size := uintptr(unsafe.Pointer(&value[0])), uintptr(len(value))
	two("setxattr", 231, p, unix.SYS_SETXATTR, s(file), s(name), data, size, 0)
	two("lsetxattr", 231, p, unix.SYS_LSETXATTR, s(p), s(name), data, size, 0)
	two("fsetxattr", 231, p, unix.SYS_FSETXATTR, uintptr(fd), s(name), data, size, 0)
	two("setxattrat", 231, p, unix.SYS_SETXATTRAT, c, s(file), 0, s(name), uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
	two("removexattr", 233, p, unix.SYS_REMOVEXATTR, s(file), s(name))
	two("lremovexattr", 233, p, unix.SYS_LREMOVEXATTR, s(file), s(name))
	two("fremovexattr", 233, p, unix.SYS_FREMOVEXATTR, uintptr(fd), s(name))
	two("removexattrat", 233, p, unix.SYS_REMOVEXATTRAT, c, s(file), 0, s(name))
	two("setxattr-enoent", 231, at("M-xattr-none"), unix.SYS_SETXATTR, s("M-xattr-none"), s(name), data, size, 0)
	runtime.KeepAlive(value)
	runtime.KeepAlive(&args)
	unix.Close(fd)
}
