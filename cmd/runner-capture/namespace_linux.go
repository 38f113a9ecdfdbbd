package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/cmd/internal/confine"
	"github.com/runner-evidence/runner/schemas"
)

// privateMounts is the mount namespace that the command is started in. It is made on a
// thread that ends then; only the descriptors, and later the command, keep it.
type privateMounts struct{ mount, root, cwd int }

// makeMounts makes the namespace after the plan, and lets the listener watch it.
func makeMounts(plan []confine.Mount, l *listener) (*privateMounts, error) {
	p := &privateMounts{-1, -1, -1}
	err := confine.OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("making a mount namespace: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("making the mounts private: %w", err)
		}
		if err := attach(plan); err != nil {
			return err
		}
		if err := p.open(); err != nil {
			return err
		}
		if err := watchMounts(l); err != nil {
			return err
		}
		return l.canary()
	})
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// attach puts a copy of each place on itself, from the top down. All copies are made
// first: a place that may be written, below one that may not, is as it was before.
func attach(plan []confine.Mount) (err error) {
	trees := make([]int, len(plan))
	for i, m := range plan {
		if m.Path == "/" {
			continue
		}
		trees[i], err = unix.OpenTree(unix.AT_FDCWD, m.Path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
		if err != nil {
			return fmt.Errorf("copying the mount of %s: %w", schemas.Text(m.Path), err)
		}
		defer unix.Close(trees[i])
	}
	for i, m := range plan {
		at, name, flags := trees[i], "", uint(unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
		if m.Path == "/" {
			at, name, flags = unix.AT_FDCWD, "/", unix.AT_RECURSIVE
		}
		if set := attributes(m); set != 0 {
			if err := unix.MountSetattr(at, name, flags, &unix.MountAttr{Attr_set: set}); err != nil {
				return fmt.Errorf("restricting the mount %s: %w", schemas.Text(m.Path), err)
			}
		}
		if m.Path == "/" {
			continue
		}
		if err := unix.MoveMount(at, "", unix.AT_FDCWD, m.Path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("mounting %s on itself: %w", schemas.Text(m.Path), err)
		}
	}
	return nil
}

// attributes are those of a mount. The kernel asks nobody about an open of a device, and
// opens it for writing on a read-only mount too.
func attributes(m confine.Mount) (set uint64) {
	if m.ReadOnly() {
		set |= unix.MOUNT_ATTR_RDONLY
	}
	if m.Region.Deny[schemas.HookRead] {
		set |= unix.MOUNT_ATTR_NODEV
	}
	return set
}

// open opens what runner-exec needs. The working directory is found again by its name:
// the thread's own is below the mounts that were just made.
func (p *privateMounts) open() error {
	var before, after unix.Stat_t
	cwd, err := unix.Getwd()
	if err == nil {
		err = unix.Stat(".", &before)
	}
	if err == nil {
		p.cwd, err = unix.Open(cwd, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	if err == nil {
		err = unix.Fstat(p.cwd, &after)
	}
	if err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	if before.Dev != after.Dev || before.Ino != after.Ino {
		return fmt.Errorf("the working directory is not at %s, where it should be", schemas.Text(cwd))
	}
	if p.root, err = unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("opening the root directory: %w", err)
	}
	if p.mount, err = unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("opening the mount namespace: %w", err)
	}
	return nil
}

// watchMounts lets the listener watch every mount of the namespace on which something is
// to be asked about.
func watchMounts(l *listener) error {
	b, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			return fmt.Errorf("a line of mountinfo is %.100q", line)
		}
		if err := l.watch(cgroup.Unoctal(fields[4])); err != nil {
			return err
		}
	}
	return nil
}

// ready is what runner-exec is told.
func (p *privateMounts) ready(l *listener) *schemas.ReadyNamespace {
	return &schemas.ReadyNamespace{Process: uint64(os.Getpid()), Mount: uint64(p.mount), Root: uint64(p.root),
		Cwd: uint64(p.cwd), Listener: uint64(l.fd)}
}

func (p *privateMounts) close() {
	for _, fd := range []int{p.mount, p.root, p.cwd} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// errNotAsked: an open that should have been refused was not.
var errNotAsked = errors.New("an open that was to be refused was not: permission events do nothing here")
