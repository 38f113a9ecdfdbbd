//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

var reads = []attempt{
	{"read-direct", "read", nil, func(p *place) error { return readFile(p.secret("file")) }},
	{"read-list", "read", nil, func(p *place) error { return list(p.secret("dir")) }},
	{"read-symlink", "read", symlinkBefore, func(p *place) error { return readFile(p.open("symlink")) }},
	{"read-symlink-directory", "read", symdirBefore, func(p *place) error { return readFile(p.open("symdir/file")) }},
	{"read-cwd", "read", nil, func(p *place) error {
		return first(func() error { return hidden(unix.Chdir(p.secret(""))) }, func() error { return readFile("file") })
	}},
	{"read-dotdot", "read", nil, func(p *place) error {
		return readFile(p.open("dir") + "/../" + strings.Repeat("../", strings.Count(p.below(""), "/")+1) + p.below("file"))
	}},
	{"read-proc-root", "read", nil, func(p *place) error { return readFile("/proc/self/root" + p.secret("file")) }},
	{"read-proc-cwd", "read", nil, func(p *place) error {
		return first(func() error { return hidden(unix.Chdir(p.top)) }, func() error { return readFile("/proc/thread-self/cwd/" + p.below("file")) })
	}},
	{"read-proc-fd", "read", nil, readProcFD},
	{"read-dirfd", "read", nil, func(p *place) error { return fromDir(p.secret(""), "file") }},
	{"read-openat2", "read", nil, func(p *place) error {
		fd, err := unix.Openat2(unix.AT_FDCWD, p.secret("file"), &unix.OpenHow{Flags: unix.O_RDONLY})
		if err == nil {
			unix.Close(fd)
		}
		return err
	}},
	{"read-handle", "read", nil, readHandle},
	{"read-device", "read", deviceBefore, func(p *place) error { return opens(p.secret("device"), unix.O_RDONLY) }},
	{"read-fifo", "read", fifoBefore, func(p *place) error { return opens(p.secret("fifo"), unix.O_RDONLY|unix.O_NONBLOCK) }},
	{"read-link-made-before", "read", linkBefore, func(p *place) error { return readFile(p.open("before")) }},
	{"read-link-made-during", "read", nil, func(p *place) error {
		return first(func() error { return unix.Link(p.secret("file"), p.open("during")) }, func() error { return readFile(p.open("during")) })
	}},
	{"read-renamed", "read", nil, func(p *place) error {
		return first(func() error { return unix.Rename(p.secret("file"), p.open("out")) }, func() error { return readFile(p.open("out")) })
	}},
	{"read-renamed-directory", "read", nil, func(p *place) error {
		return first(func() error { return unix.Rename(p.secret(""), p.open("out")) }, func() error { return readFile(p.open("out/file")) })
	}},
	{"read-renamed-above", "read", nil, func(p *place) error {
		return first(func() error { return unix.Rename(p.top, p.top+"-moved") }, func() error { return readFile(p.top + "-moved/secret/file") })
	}},
	{"read-exchanged", "read", nil, func(p *place) error {
		return first(func() error {
			return unix.Renameat2(unix.AT_FDCWD, p.secret("file"), unix.AT_FDCWD, p.open("file"), unix.RENAME_EXCHANGE)
		}, func() error { return readFile(p.open("file")) })
	}},
	{"read-chroot", "read", nil, func(p *place) error {
		return first(func() error { return hidden(unix.Chroot(p.secret(""))) }, func() error { return readFile("/file") })
	}},
	{"read-chroot-above", "read", nil, func(p *place) error {
		return first(func() error { return hidden(unix.Chroot(p.top)) }, func() error { return readFile("/" + p.below("file")) })
	}},
	{"read-bind-made-during", "read", nil, func(p *place) error {
		return first(ownMounts, func() error { return bind(p.secret(""), p.open("dir")) }, func() error { return readFile(p.open("dir/file")) })
	}},
	{"read-bind-file", "read", nil, func(p *place) error {
		return first(ownMounts, func() error { return bind(p.secret("file"), p.open("file")) }, func() error { return readFile(p.open("file")) })
	}},
	{"read-bind-above", "read", nil, func(p *place) error {
		return first(ownMounts, func() error { return bind(p.top, p.open("dir")) }, func() error { return readFile(p.open("dir/" + p.below("file"))) })
	}},
	{"read-open-tree", "read", nil, readTree},
	{"read-own-namespace", "read", nil, func(p *place) error {
		return first(ownMounts, func() error { return readFile(p.secret("file")) })
	}},
	{"read-first-namespace", "read", nil, readFirst},
	{"read-unmounted", "read", nil, func(p *place) error {
		unix.Unmount(p.secret("file"), unix.MNT_DETACH) // what a mechanism mounted there, if it did
		unix.Unmount(p.secret(""), unix.MNT_DETACH)
		return readFile(p.secret("file"))
	}},
	{"read-mounted-over", "read", nil, func(p *place) error {
		return first(ownMounts, func() error { return hidden(unix.Mount("over", p.open(""), "tmpfs", 0, "")) }, func() error { return readFile(p.secret("file")) })
	}},
}

func hidden(err error) error {
	if err != nil {
		return hide(err)
	}
	return nil
}

func list(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Getdents(fd, make([]byte, 4096))
	return err
}

func readProcFD(p *place) error {
	fd, err := opath(p.secret("file"))
	if err != nil {
		return hide(err)
	}
	defer unix.Close(fd)
	return readFile(fdPath(fd))
}

func fromDir(dir, name string) error {
	fd, err := opath(dir)
	if err != nil {
		return hide(err)
	}
	defer unix.Close(fd)
	return readsAt(fd, name)
}

func readHandle(p *place) error {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, p.secret("file"), 0)
	if err != nil {
		return hide(err)
	}
	mnt, err := unix.Open(p.open(""), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return hide(err)
	}
	defer unix.Close(mnt)
	fd, err := unix.OpenByHandleAt(mnt, h, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Read(fd, make([]byte, 1))
	return err
}

// readTree clones the mount of the folder and reads in the clone, which is mounted nowhere.
func readTree(p *place) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, p.secret(""), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return readsAt(fd, "file")
}

// readFirst enters the mount namespace of the program that started the run, which is not
// under its rules, or that of the machine's first process.
func readFirst(p *place) error {
	var fd int
	var err error
	for _, pid := range []int{os.Getppid(), 1} {
		if fd, err = unix.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			break
		}
	}
	if err != nil {
		return hide(err)
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, unix.CLONE_NEWNS); err != nil {
		return err
	}
	return readFile(p.secret("file"))
}
