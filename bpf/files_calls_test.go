//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filesCaller makes the test binary start one that tries operations on files. It is not
// itself that process: what the loader starts is not subject to the rules.
const filesCaller = "files"

func filesCallerMain() {
	const second = "RUNNER_TEST_SECOND"
	if os.Getenv(second) == "" {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), second+"=1")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	fmt.Println("ready")
	answer(call.file)
}

// opened closes what was opened.
func opened(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// apart runs something on a thread that ends afterwards: it may change its root, working
// directory and mounts.
func apart(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			done <- fmt.Errorf("a separate mount namespace: %v", err)
			return
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			done <- fmt.Errorf("private mounts: %v", err)
			return
		}
		done <- f()
	}()
	return <-done
}

var byFlags = map[string]int{
	"read": unix.O_RDONLY, "list": unix.O_RDONLY | unix.O_DIRECTORY, "write": unix.O_WRONLY, "both": unix.O_RDWR,
	"empty": unix.O_RDONLY | unix.O_TRUNC, "create": unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL, "path": unix.O_PATH,
	"tmpfile": unix.O_RDWR | unix.O_TMPFILE,
}

// file tries an operation on To, or on Via and To.
func (c call) file() error {
	if flags, ok := byFlags[c.Do]; ok {
		return opened(unix.Open(c.To, flags|unix.O_CLOEXEC, 0o600))
	}
	switch c.Do {
	case "truncate":
		return unix.Truncate(c.To, 1)
	case "chmod":
		return unix.Chmod(c.To, 0o700)
	case "chown":
		return unix.Lchown(c.To, 0, 0)
	case "times":
		return unix.UtimesNanoAt(unix.AT_FDCWD, c.To, []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0)
	case "now":
		return unix.UtimesNanoAt(unix.AT_FDCWD, c.To, nil, 0)
	case "setxattr":
		return unix.Setxattr(c.To, "trusted.runner", []byte("x"), 0)
	case "removexattr":
		return unix.Removexattr(c.To, "trusted.runner")
	case "flags":
		fd, err := unix.Open(c.To, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %v", c.To, err)
		}
		defer unix.Close(fd)
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, 0)
	case "unlink":
		return unix.Unlink(c.To)
	case "rmdir":
		return unix.Rmdir(c.To)
	case "mkdir":
		return unix.Mkdir(c.To, 0o700)
	case "mknod":
		return unix.Mknod(c.To, unix.S_IFIFO|0o600, 0)
	case "symlink":
		return unix.Symlink("anywhere", c.To)
	case "link":
		return unix.Link(c.Via, c.To)
	case "rename":
		return unix.Rename(c.Via, c.To)
	case "exchange":
		return unix.Renameat2(unix.AT_FDCWD, c.Via, unix.AT_FDCWD, c.To, unix.RENAME_EXCHANGE)
	case "exec":
		return run(c.To)
	}
	return c.roundabout()
}

// run starts a program, and says how that went.
func run(path string) error {
	cmd := exec.Command(path)
	err := cmd.Start()
	if err == nil {
		cmd.Wait()
	}
	return err
}

// roundabout opens To by a way around its path.
func (c call) roundabout() error {
	switch c.Do {
	case "descriptor": // opened without rights, then opened again
		fd, err := unix.Open(c.To, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return opened(unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0))
	case "handle":
		h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, c.To, 0)
		if err != nil {
			return err
		}
		at, err := unix.Open(c.Via, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %v", c.Via, err)
		}
		defer unix.Close(at)
		if c.Name != "" { // so that the kernel has no names for it
			for range 2 { // what was used twice stays the first time
				os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0)
			}
		}
		return opened(unix.OpenByHandleAt(at, h, unix.O_RDONLY|unix.O_CLOEXEC))
	case "bind": // Via is bound to Name first
		return apart(func() error {
			if err := unix.Mount(c.Via, c.Name, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
				return fmt.Errorf("bind mount: %v", err)
			}
			return opened(unix.Open(c.To, unix.O_RDONLY|unix.O_CLOEXEC, 0))
		})
	case "clone": // a detached tree of Via, and To in it
		return apart(func() error {
			at, err := unix.OpenTree(unix.AT_FDCWD, c.Via, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			if err != nil {
				return fmt.Errorf("open_tree: %v", err)
			}
			defer unix.Close(at)
			return opened(unix.Openat(at, c.To, unix.O_RDONLY|unix.O_CLOEXEC, 0))
		})
	case "chroot":
		return apart(func() error {
			if err := unix.Chroot(c.Via); err != nil {
				return fmt.Errorf("chroot: %v", err)
			}
			return opened(unix.Open(c.To, unix.O_RDONLY|unix.O_CLOEXEC, 0))
		})
	case "from": // relative to a working directory
		return apart(func() error {
			if err := unix.Chdir(c.Via); err != nil {
				return fmt.Errorf("chdir: %v", err)
			}
			return opened(unix.Open(c.To, unix.O_RDONLY|unix.O_CLOEXEC, 0))
		})
	case "mount": // Via on To
		return unix.Mount(c.Via, c.To, "", unix.MS_BIND, "")
	case "mount private": // in one call; the kernel makes the mount and forgets the rest
		return unix.Mount(c.Via, c.To, "", unix.MS_BIND|unix.MS_PRIVATE, "")
	case "umount":
		return unix.Unmount(c.To, unix.MNT_DETACH)
	case "tmpfs":
		return unix.Mount("t", c.To, "tmpfs", 0, "")
	case "overlay": // To is read through an overlay of Via on Name
		return apart(func() error {
			if err := unix.Mount("o", c.Name, "overlay", 0, "lowerdir="+c.Via+":"+c.Name); err != nil {
				return err
			}
			return opened(unix.Open(c.To, unix.O_RDONLY|unix.O_CLOEXEC, 0))
		})
	case "linked": // through a link that the program makes
		link := filepath.Join(c.Name, "link")
		if err := unix.Symlink(c.To, link); err != nil {
			return fmt.Errorf("symlink: %v", err)
		}
		defer unix.Unlink(link)
		return opened(unix.Open(link, unix.O_RDONLY|unix.O_CLOEXEC, 0))
	case "memfd": // a program that has no path
		fd, err := unix.MemfdCreate("program", 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		b, err := os.ReadFile(c.To)
		if err != nil {
			return fmt.Errorf("%s: %v", c.To, err)
		}
		if _, err := unix.Write(fd, b); err != nil {
			return err
		}
		return run(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd))
	}
	return c.uringFile()
}

// uringFile makes a call through io_uring, by a worker if Name says so.
func (c call) uringFile() error {
	u, err := newUring()
	if err != nil {
		return err
	}
	defer u.close()
	to := append([]byte(c.To), 0)
	via := append([]byte(c.Via), 0)
	e := uringEntry{fd: unix.AT_FDCWD, addr: uint64(uintptr(unsafe.Pointer(&to[0])))}
	if c.Name != "" {
		e.flags = 1 << 4
	}
	switch c.Do {
	case "uring read":
		e.opcode, e.opFlags = 18, unix.O_RDONLY|unix.O_CLOEXEC
	case "uring unlink":
		e.opcode = 36
	case "uring mkdir":
		e.opcode, e.len = 37, 0o700
	case "uring rename":
		at := int32(unix.AT_FDCWD)
		e.opcode, e.addr, e.len, e.off = 35, uint64(uintptr(unsafe.Pointer(&via[0]))), uint32(at), uint64(uintptr(unsafe.Pointer(&to[0])))
	default:
		return fmt.Errorf("no call %q", c.Do)
	}
	err = u.do(e)
	runtime.KeepAlive(to)
	runtime.KeepAlive(via)
	return err
}
