//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// Calls beside the well-known ones that open, name or change something.
var unlisted = []struct {
	name string
	call string // as the table of calls has it
	what string
	do   func(w *world) (value string, err error)
}{
	{"mode by an ACL", "setxattr", "an ACL written by setxattr changes the mode of a file", func(w *world) (string, error) {
		if err := os.WriteFile("file", nil, 0o600); err != nil {
			return "", err
		}
		acl := []byte{2, 0, 0, 0}
		for _, entry := range [][4]byte{{1, 0, 7, 0}, {4, 0, 7, 0}, {0x20, 0, 7, 0}} {
			acl = append(append(acl, entry[:]...), 0xff, 0xff, 0xff, 0xff)
		}
		if err := unix.Setxattr("file", "system.posix_acl_access", acl, 0); err != nil {
			return "", noSuch(err, "no ACLs here")
		}
		if st, err := os.Stat("file"); err != nil || st.Mode().Perm() != 0o777 {
			return "", fmt.Errorf("the mode is %v", st.Mode())
		}
		return w.path("file"), nil
	}},
	{"message queue", "mq_open", "makes a POSIX message queue and removes it", func(w *world) (string, error) {
		name := fmt.Sprint("attacks-", os.Getpid())
		p := text(name)
		if r := raw(unix.SYS_MQ_OPEN, addr(p), unix.O_CREAT|unix.O_RDWR, 0o600, 0); r < 0 {
			return "", noSuch(unix.Errno(-r), "no message queues here")
		}
		if r := raw(unix.SYS_MQ_UNLINK, addr(p)); r < 0 {
			return "", unix.Errno(-r)
		}
		return name, nil
	}},
	{"attributes of a mount", "mount_setattr", "makes a mount read-only by mount_setattr", func(w *world) (string, error) {
		if err := errors.Join(ownMounts(), unix.Mkdir("m", 0o700), unix.Mount("none", "m", "tmpfs", 0, "")); err != nil {
			return "", err
		}
		err := unix.MountSetattr(unix.AT_FDCWD, "m", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		return w.path("m"), err
	}},
	{"copy of a mount", "open_tree", "copies a mount by open_tree", func(w *world) (string, error) {
		if err := errors.Join(ownMounts(), unix.Mkdir("m", 0o700), unix.Mount("none", "m", "tmpfs", 0, "")); err != nil {
			return "", err
		}
		_, err := unix.OpenTree(unix.AT_FDCWD, "m", unix.OPEN_TREE_CLONE)
		return w.path("m"), err
	}},
	{"mount reconfigured", "fspick", "takes a mount's file system by fspick", func(w *world) (string, error) {
		if err := errors.Join(ownMounts(), unix.Mkdir("m", 0o700), unix.Mount("none", "m", "tmpfs", 0, "")); err != nil {
			return "", err
		}
		p := text("m")
		if r := raw(unix.SYS_FSPICK, cwd, addr(p), 0); r < 0 {
			return "", unix.Errno(-r)
		}
		return w.path("m"), nil
	}},
	{"accounting refused", "acct", "acct of a file that is none", func(w *world) (string, error) {
		p := text("none")
		if r := raw(unix.SYS_ACCT, addr(p)); r >= 0 {
			raw(unix.SYS_ACCT, 0)
			return "", errors.New("accounting was switched on")
		} else if r == -int64(unix.ENOSYS) {
			return "", notHere("no accounting in this kernel")
		}
		return w.path("none"), nil
	}},
	{"terminal by an ioctl", "ioctl", "opens the other end of a terminal by TIOCGPTPEER, without a name", func(w *world) (string, error) {
		master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			return "", noSuch(err, "no terminals here")
		}
		unlock := int32(0)
		if r := raw(unix.SYS_IOCTL, uintptr(master), unix.TIOCSPTLCK, addr(&unlock)); r < 0 {
			return "", unix.Errno(-r)
		}
		const peer = 0x5441
		fd := raw(unix.SYS_IOCTL, uintptr(master), peer, unix.O_RDWR|unix.O_NOCTTY)
		if fd < 0 {
			return "", unix.Errno(-fd)
		}
		return os.Readlink(fmt.Sprint("/proc/self/fd/", fd))
	}},
	{"descriptors from fanotify", "fanotify_init", "gets an open descriptor of a file by an event of fanotify", func(w *world) (string, error) {
		if err := os.WriteFile("file", nil, 0o600); err != nil {
			return "", err
		}
		group, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF, unix.O_RDONLY) // to write: an attack of its own
		if err != nil {
			return "", noSuch(err, "no fanotify here")
		}
		if err := unix.FanotifyMark(group, unix.FAN_MARK_ADD, unix.FAN_CLOSE_WRITE, unix.AT_FDCWD, "file"); err != nil {
			return "", err
		}
		if err := os.WriteFile("file", []byte("x"), 0o600); err != nil {
			return "", err
		}
		n, err := unix.Read(group, make([]byte, 100))
		if err != nil || n < 24 {
			return "", fmt.Errorf("%d bytes: %w", n, err)
		}
		return "given", nil
	}},
}

// noSuch turns the errors of a kernel that lacks something into notHere.
func noSuch(err error, what string) error {
	for _, e := range []error{unix.ENOSYS, unix.EOPNOTSUPP, unix.ENOENT, unix.ENODEV, unix.EINVAL} {
		if errors.Is(err, e) {
			return notHere(what)
		}
	}
	return err
}

func init() {
	for _, u := range unlisted {
		open := ""
		if c := schemas.CoverageOfCall(u.call); c != nil && c.Op == "" && c.Blind == "" {
			open = "the call is in no line and no note"
		}
		add(attack{name: u.name, class: "A14", what: u.what, open: open,
			run: func(w *world) error {
				value, err := u.do(w)
				w.say("value", value)
				return err
			},
			judge: func(e *evidence) verdict {
				coverage := schemas.CoverageOfCall(u.call)
				if coverage == nil {
					return lie("the specification does not know %s", u.call)
				}
				for i := range e.own { // a line of the call itself, not that of a call before it
					if l := &e.own[i]; (l.Type >= 231 || u.call == "ioctl" && l.Type == 1) && strings.Contains(l.text(), e.said("value")) {
						return exact()
					}
				}
				if coverage.Blind == "" || !e.noted(coverage.Blind) {
					return lie("absent: %s %s", u.call, e.said("value"))
				}
				return declared("s2_blind_spots: %s", coverage.Blind)
			}})
	}
}
