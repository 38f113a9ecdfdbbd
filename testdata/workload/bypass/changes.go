//go:build linux

package main

import (
	"golang.org/x/sys/unix"
)

var writes = []attempt{
	{"write-direct", "write", nil, func(p *place) error { return opens(p.secret("file"), unix.O_WRONLY) }},
	{"write-append", "write", nil, func(p *place) error { return opens(p.secret("file"), unix.O_WRONLY|unix.O_APPEND) }},
	{"write-symlink", "write", symlinkBefore, func(p *place) error { return opens(p.open("symlink"), unix.O_RDWR) }},
	{"write-proc-fd", "write", nil, func(p *place) error {
		fd, err := opath(p.secret("file"))
		if err != nil {
			return hide(err)
		}
		defer unix.Close(fd)
		return opens(fdPath(fd), unix.O_WRONLY)
	}},
	{"write-truncating-open", "write", nil, func(p *place) error { return opens(p.secret("file"), unix.O_RDONLY|unix.O_TRUNC) }},
	{"write-truncate", "write", nil, func(p *place) error { return unix.Truncate(p.secret("file"), 0) }},
	{"write-truncate-symlink", "write", symlinkBefore, func(p *place) error { return unix.Truncate(p.open("symlink"), 0) }},
	{"write-mode-of-reader", "write", nil, func(p *place) error {
		fd, err := unix.Open(p.secret("file"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return hide(err)
		}
		defer unix.Close(fd)
		return unix.Fchmod(fd, 0o600)
	}},
	{"write-mode", "write", nil, func(p *place) error { return unix.Chmod(p.secret("file"), 0o600) }},
	{"write-owner", "write", nil, func(p *place) error { return unix.Chown(p.secret("file"), 0, 0) }},
	{"write-times", "write", nil, func(p *place) error { return unix.Utimes(p.secret("file"), make([]unix.Timeval, 2)) }},
	{"write-attribute", "write", nil, func(p *place) error { return unix.Setxattr(p.secret("file"), "trusted.m", []byte("x"), 0) }},
	{"write-device", "write", deviceBefore, func(p *place) error { return opens(p.secret("device"), unix.O_WRONLY) }},
	{"write-fifo", "write", fifoBefore, func(p *place) error { return opens(p.secret("fifo"), unix.O_RDWR|unix.O_NONBLOCK) }},
	{"write-link-made-before", "write", linkBefore, func(p *place) error { return opens(p.open("before"), unix.O_WRONLY) }},
	{"write-link-made-during", "write", nil, func(p *place) error {
		return first(func() error { return unix.Link(p.secret("file"), p.open("during")) }, func() error { return opens(p.open("during"), unix.O_WRONLY) })
	}},
	{"write-bind-made-during", "write", nil, func(p *place) error {
		return first(ownMounts, func() error { return bind(p.secret(""), p.open("dir")) }, func() error { return opens(p.open("dir/file"), unix.O_WRONLY) })
	}},
	{"write-remounted", "write", nil, func(p *place) error {
		unix.Mount("", p.secret(""), "", unix.MS_REMOUNT|unix.MS_BIND, "") // if a mechanism made it read-only
		return opens(p.secret("file"), unix.O_WRONLY)
	}},
	{"write-renamed-directory", "write", nil, func(p *place) error {
		return first(func() error { return unix.Rename(p.secret(""), p.open("out")) }, func() error { return opens(p.open("out/file"), unix.O_WRONLY) })
	}},
}

var creates = []attempt{
	{"create-open", "create", nil, func(p *place) error { return opens(p.secret("new"), unix.O_CREAT|unix.O_RDWR) }},
	{"create-cwd", "create", nil, func(p *place) error {
		return first(func() error { return hidden(unix.Chdir(p.secret("dir"))) }, func() error { return opens("../new", unix.O_CREAT|unix.O_WRONLY) })
	}},
	{"create-mkdir", "create", nil, func(p *place) error { return unix.Mkdir(p.secret("new"), 0o755) }},
	{"create-symlink", "create", nil, func(p *place) error { return unix.Symlink("target", p.secret("new")) }},
	{"create-fifo", "create", nil, func(p *place) error { return unix.Mknod(p.secret("new"), unix.S_IFIFO|0o600, 0) }},
	{"create-socket", "create", nil, createSocket},
	{"create-link", "create", nil, func(p *place) error { return unix.Link(p.open("file"), p.secret("new")) }},
	{"create-rename-into", "create", nil, func(p *place) error { return unix.Rename(p.open("file"), p.secret("new")) }},
	{"create-rename-directory-into", "create", nil, func(p *place) error { return unix.Rename(p.open("dir"), p.secret("new")) }},
	{"create-nameless", "create", nil, func(p *place) error { return nameless(p.open(""), p.secret("new")) }},
	{"create-bind-made-during", "create", nil, func(p *place) error {
		return first(ownMounts, func() error { return bind(p.secret(""), p.open("dir")) }, func() error { return opens(p.open("dir/new"), unix.O_CREAT|unix.O_RDWR) })
	}},
	{"create-later-directory", "create", noSecret, func(p *place) error {
		return first(func() error { return unix.Mkdir(p.secret(""), 0o755) }, func() error { return opens(p.secret("new"), unix.O_CREAT|unix.O_RDWR) })
	}},
	{"create-later-renamed", "create", noSecret, func(p *place) error { return unix.Rename(p.open("dir"), p.secret("")) }},
	{"create-mounted-over", "create", nil, func(p *place) error {
		return first(ownMounts, func() error { return hidden(unix.Mount("over", p.secret(""), "tmpfs", 0, "")) },
			func() error { return opens(p.secret("new"), unix.O_CREAT|unix.O_RDWR) })
	}},
}

var deletes = []attempt{
	{"delete-unlink", "delete", nil, func(p *place) error { return unix.Unlink(p.secret("file")) }},
	{"delete-dirfd", "delete", nil, func(p *place) error {
		fd, err := opath(p.secret(""))
		if err != nil {
			return hide(err)
		}
		defer unix.Close(fd)
		return unix.Unlinkat(fd, "file", 0)
	}},
	{"delete-symlink-directory", "delete", symdirBefore, func(p *place) error { return unix.Unlink(p.open("symdir/file")) }},
	{"delete-rmdir", "delete", nil, func(p *place) error { return unix.Rmdir(p.secret("dir")) }},
	{"delete-rename-out", "delete", nil, func(p *place) error { return unix.Rename(p.secret("file"), p.open("out")) }},
	{"delete-rename-within", "delete", nil, func(p *place) error { return unix.Rename(p.secret("file"), p.secret("other")) }},
	{"delete-replaced", "delete", nil, func(p *place) error { return unix.Rename(p.open("file"), p.secret("file")) }},
	{"delete-renamed-above", "delete", nil, func(p *place) error {
		return first(func() error { return unix.Rename(p.top, p.top+"-moved") }, func() error { return unix.Unlink(p.top + "-moved/secret/file") })
	}},
	{"delete-bind-made-during", "delete", nil, func(p *place) error {
		return first(ownMounts, func() error { return bind(p.secret(""), p.open("dir")) }, func() error { return unix.Unlink(p.open("dir/file")) })
	}},
	{"delete-chroot", "delete", nil, func(p *place) error {
		return first(func() error { return hidden(unix.Chroot(p.top)) }, func() error { return unix.Unlink("/" + p.below("file")) })
	}},
}

// noSecret takes the folder away that rules deny: it is made later.
func noSecret(p *place) {
	for _, name := range []string{p.secret("file"), p.secret("prog"), p.secret("dir"), p.secret("")} {
		check(unixRemove(name))
	}
}

func unixRemove(name string) error {
	if err := unix.Unlink(name); err == nil {
		return nil
	}
	return unix.Rmdir(name)
}

func createSocket(p *place) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return hide(err)
	}
	defer unix.Close(fd)
	if err := unix.Chdir(p.secret("")); err != nil { // a socket's name is short
		return hide(err)
	}
	return unix.Bind(fd, &unix.SockaddrUnix{Name: "new"})
}

// nameless makes a file without a name and then gives it one.
func nameless(dir, name string) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return hide(err)
	}
	defer unix.Close(fd)
	return unix.Linkat(unix.AT_FDCWD, fdPath(fd), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}
