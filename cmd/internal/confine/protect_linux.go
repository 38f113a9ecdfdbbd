package confine

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
)

// kernelTypes are file systems by whose files root reaches the kernel, other cgroups, and
// programs that the kernel starts outside of the cgroup.
var kernelTypes = []string{"proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs", "efivarfs", "pstore", "bpf", "binfmt_misc"}

// place is a mount of the calling thread's namespace.
type place struct {
	id, parent int
	at, kind   string
	options    string // of the file system
}

// places are the mounts of the calling thread's namespace.
func places() (all []place, err error) {
	b, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		before, after, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		head, tail := strings.Fields(before), strings.Split(after, " ")
		if !ok || len(head) < 6 || len(tail) < 3 {
			return nil, fmt.Errorf("a line of mountinfo is %.100q", line)
		}
		p := place{at: cgroup.Unoctal(head[4]), kind: tail[0], options: tail[len(tail)-1]}
		p.id, err = strconv.Atoi(head[0])
		if err == nil {
			p.parent, err = strconv.Atoi(head[1])
		}
		if err != nil {
			return nil, fmt.Errorf("a line of mountinfo is %.100q", line)
		}
		all = append(all, p)
	}
	return all, nil
}

// protect makes the files of the kernel read-only for this thread and what it starts. own
// says that the mount namespace is the thread's alone and nothing watches its mounts: then
// /proc is a new one, in which the command's own processes can be written, and others are
// not there. A domain must keep the mounts as they are.
func protect(own bool) error {
	if own {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("making a mount namespace: %w", err)
		}
		// Mounts that come later outside still come here.
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
			return fmt.Errorf("keeping the mounts to ourselves: %w", err)
		}
	}
	all, err := places()
	if err != nil {
		return err
	}
	for i := range all {
		if slices.Contains(kernelTypes, all[i].kind) {
			if err := all[i].freeze(); err != nil {
				return fmt.Errorf("making %s read-only: %w", all[i].at, err)
			}
		}
	}
	if !own {
		return nil
	}
	for i := range all {
		if p := &all[i]; p.at == "/proc" && p.kind == "proc" && p.here() {
			if err := p.renew(all); err != nil {
				return fmt.Errorf("making a /proc of its own: %w", err)
			}
			return again()
		}
	}
	return nil
}

var readOnly = &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}

// freeze makes a mount read-only. One that is covered by another cannot be reached.
func (p *place) freeze() error {
	fd, err := p.open()
	if err != nil || fd < 0 {
		return err
	}
	defer unix.Close(fd)
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, readOnly)
}

// open opens the root of the mount; the result is -1 if another one covers it.
func (p *place) open() (int, error) {
	fd, err := unix.Open(p.at, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_NO_AUTOMOUNT, unix.STATX_MNT_ID, &st); err != nil {
		unix.Close(fd)
		return -1, err
	}
	if st.Mnt_id != uint64(p.id) {
		unix.Close(fd)
		return -1, nil
	}
	return fd, nil
}

// here reports whether this /proc is on top, and of our own process ids.
func (p *place) here() bool {
	fd, err := p.open()
	if err != nil || fd < 0 {
		return false
	}
	unix.Close(fd)
	self, err := os.Readlink(path.Join(p.at, "self"))
	return err == nil && self == strconv.Itoa(os.Getpid())
}

// renew covers /proc with a new one that shows only processes that may be traced: within a
// domain, those of the domain. In it, all but the processes is read-only.
func (p *place) renew(all []place) error {
	fresh, err := newProc(p.options)
	if err != nil {
		return err
	}
	defer unix.Close(fresh)
	below := map[string]int{} // what was mounted on the old one, by its path
	for i := range all {
		if q := &all[i]; q.parent == p.id && q.kind != "autofs" && strings.HasPrefix(q.at, p.at+"/") {
			tree, err := copyTree(unix.AT_FDCWD, q.at)
			if err != nil {
				return err
			}
			defer unix.Close(tree)
			below[q.at] = tree
		}
	}
	if err := unix.MoveMount(fresh, "", unix.AT_FDCWD, p.at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mounting it: %w", err)
	}
	if err := freezeEntries(fresh, p.at); err != nil {
		return err
	}
	for at, tree := range below {
		if err := unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("mounting %s: %w", at, err)
		}
	}
	return nil
}

func newProc(options string) (int, error) {
	fs, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	err = unix.FsconfigSetString(fs, "source", "proc")
	if err == nil {
		err = unix.FsconfigSetString(fs, "hidepid", "ptraceable")
	}
	if err == nil && slices.Contains(strings.Split(options, ","), "subset=pid") {
		err = unix.FsconfigSetString(fs, "subset", "pid")
	}
	if err == nil {
		err = unix.FsconfigCreate(fs)
	}
	if err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
}

func copyTree(dir int, name string) (int, error) {
	fd, err := unix.OpenTree(dir, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	if err != nil {
		return -1, fmt.Errorf("copying the mount of %s: %w", name, err)
	}
	return fd, nil
}

// freezeEntries puts a read-only copy of each entry on itself that is not of a process.
// Programs ask for news of the load by writing into pressure.
func freezeEntries(proc int, at string) error {
	entries, err := os.ReadDir(at)
	if err != nil {
		return err
	}
	for _, e := range entries {
		_, process := strconv.Atoi(e.Name())
		info, err := e.Info()
		if err != nil || process == nil || e.Name() == "pressure" || !e.IsDir() && (!e.Type().IsRegular() || info.Mode()&0o222 == 0) {
			continue
		}
		tree, err := copyTree(proc, e.Name())
		if err != nil {
			return err
		}
		err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, readOnly)
		if err == nil {
			err = unix.MoveMount(tree, "", proc, e.Name(), unix.MOVE_MOUNT_F_EMPTY_PATH)
		}
		unix.Close(tree)
		if err != nil {
			return fmt.Errorf("making %s/%s read-only: %w", at, e.Name(), err)
		}
	}
	return nil
}

// again enters the working directory by its name, which may now be in the new /proc.
func again() error {
	cwd, err := unix.Getwd()
	if err != nil || cwd != "/proc" && !strings.HasPrefix(cwd, "/proc/") {
		return nil // it is not there
	}
	if err := unix.Chdir(cwd); err != nil {
		return fmt.Errorf("entering the working directory: %w", err)
	}
	return nil
}
