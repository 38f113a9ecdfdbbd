//go:build linux

package main

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
	"github.com/runner-evidence/runner/testdata/workload/uring"
)

// rings do through io_uring what others do by system calls.
var rings = []attempt{
	{"ring-open", "read", nil, func(p *place) error { return ringOpen(0, p.secret("file"), unix.O_RDONLY) }},
	{"ring-open-worker", "read", nil, func(p *place) error { return ringOpen(uring.Async, p.secret("file"), unix.O_RDONLY) }},
	{"ring-write", "write", nil, func(p *place) error { return ringOpen(0, p.secret("file"), unix.O_WRONLY) }},
	{"ring-create", "create", nil, func(p *place) error { return ringOpen(0, p.secret("new"), unix.O_CREAT|unix.O_RDWR) }},
	{"ring-mkdir", "create", nil, func(p *place) error {
		return ring(uring.Entry{Op: uring.Mkdirat, FD: cwd, Addr: str(p.secret("new")), Len: 0o755})
	}},
	{"ring-symlink", "create", nil, func(p *place) error {
		return ring(uring.Entry{Op: uring.Symlinkat, FD: cwd, Addr: str("target"), Off: str(p.secret("new"))})
	}},
	{"ring-link", "create", nil, func(p *place) error {
		return ring(uring.Entry{Op: uring.Linkat, FD: cwd, Addr: str(p.open("file")), Len: cwdLen, Off: str(p.secret("new"))})
	}},
	{"ring-unlink", "delete", nil, func(p *place) error {
		return ring(uring.Entry{Op: uring.Unlinkat, FD: cwd, Addr: str(p.secret("file"))})
	}},
	{"ring-rmdir", "delete", nil, func(p *place) error {
		return ring(uring.Entry{Op: uring.Unlinkat, FD: cwd, Addr: str(p.secret("dir")), OpFlags: unix.AT_REMOVEDIR})
	}},
	{"ring-rename", "delete", nil, func(p *place) error {
		return ring(uring.Entry{Op: uring.Renameat, FD: cwd, Addr: str(p.secret("file")), Len: cwdLen, Off: str(p.open("out"))})
	}},
}

const (
	cwd    = unix.AT_FDCWD
	cwdLen = uint32(1<<32 + unix.AT_FDCWD) // where an entry has the second descriptor
)

func str(s string) uint64 { return uint64(made.Str(s)) }

// ring makes one call. That a kernel does not know the operation is no refusal.
func ring(e uring.Entry) error {
	u, err := uring.New()
	if err != nil {
		return hide(err)
	}
	defer unix.Close(u.FD)
	r := u.Do(e)
	switch {
	case r == -int64(unix.EINVAL):
		return errors.New("the kernel does not know the operation")
	case r < 0:
		return unix.Errno(-r)
	case e.Op == uring.Openat:
		unix.Close(int(r))
	}
	return nil
}

func ringOpen(flags uint8, path string, open uint32) error {
	return ring(uring.Entry{Op: uring.Openat, Flags: flags, FD: cwd, Addr: str(path), Len: 0o644, OpFlags: open})
}
