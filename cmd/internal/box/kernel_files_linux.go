package box

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// devices are all that the box has.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// makeDev makes a /dev with a few devices and terminals of its own.
func (p *place) makeDev() error {
	dev := p.stage + "/dev"
	if err := mountTmpfs(dev, "mode=0755"); err != nil {
		return fmt.Errorf("mounting /dev: %w", err)
	}
	for _, name := range devices {
		if err := bind("/dev/"+name, dev+"/"+name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("making /dev/%s: %w", name, err)
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(target, dev+"/"+name); err != nil {
			return err
		}
	}
	for _, d := range []string{"pts", "shm"} {
		if err := os.Mkdir(dev+"/"+d, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return fmt.Errorf("mounting /dev/pts: %w", err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, dev, 0, readOnly); err != nil {
		return fmt.Errorf("making /dev read-only: %w", err)
	}
	return mountTmpfs(p.stage+freshShm, "mode=1777")
}

var readOnly = &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}

// bind shows a file at another place, whatever it is.
func bind(from, to string) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := os.WriteFile(to, nil, 0o644); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, to, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// kernelFiles are files of the kernel below /proc, by which root could change it without any capability.
var kernelFiles = []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr"}

// makeProc mounts a /proc that shows the processes of the box. The rest of it is read-only.
func (p *place) makeProc() error {
	at := p.stage + "/proc"
	if err := unix.Mount("proc", at, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return missing(NoProc, fmt.Errorf("mounting a /proc of its own: %w", err), "a container that covers parts of /proc does not let anybody mount another one")
	}
	for _, name := range kernelFiles {
		if err := freeze(at + "/" + name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("making /proc/%s read-only: %w", name, err)
		}
	}
	for _, name := range []string{"kcore", "keys", "timer_list", "kmsg"} {
		if err := hide(at + "/" + name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("hiding /proc/%s: %w", name, err)
		}
	}
	return nil
}

// freeze puts a read-only copy of a place on itself.
func freeze(at string) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, at, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, readOnly); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// hide puts /dev/null on a file.
func hide(at string) error {
	if _, err := os.Lstat(at); err != nil {
		return err
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, "/dev/null", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}
