package journal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tree"
)

// capability is the attribute of the capabilities of a program.
const capability = "security.capability"

// handle is a path of what a descriptor without rights is open for. A link is not followed through it.
func handle(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// xattrs are the extended attributes that this user can see, sorted.
func xattrs(fd int) ([]xattr, error) {
	list, err := sized(func(b []byte) (int, error) { return unix.Listxattr(handle(fd), b) })
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var all []xattr
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		value, err := sized(func(b []byte) (int, error) { return unix.Getxattr(handle(fd), name, b) })
		if err == unix.ENODATA || err == unix.EOPNOTSUPP || err == unix.EPERM || err == unix.EACCES {
			continue // it is gone, or not for this user
		}
		if err != nil {
			return nil, err
		}
		all = append(all, xattr{bytesName(name), value})
	}
	sortXattrs(all)
	return all, nil
}

// sized asks for a value of which only the answer says how long it is.
func sized(get func([]byte) (int, error)) ([]byte, error) {
	for b := make([]byte, 256); ; b = make([]byte, 2*len(b)) {
		n, err := get(b)
		switch {
		case err == unix.EOPNOTSUPP || err == unix.ENOSYS:
			return nil, nil
		case err == unix.ERANGE && len(b) < 1<<20:
			continue
		case err != nil:
			return nil, err
		}
		return b[:n], nil
	}
}

// attribute sets what a name is to have besides its content: the owner, which takes away rights, then attributes, the mode, and
// the time. miss is called for each attribute that cannot be set.
func attribute(fd int, now, want *node, miss func(name string, err error)) error {
	if now.UID != want.UID || now.GID != want.GID {
		at("owner")
		if err := unix.Fchownat(fd, "", int(want.UID), int(want.GID), unix.AT_EMPTY_PATH); err != nil {
			return fmt.Errorf("its owner: %w", err)
		}
	}
	if !want.AnyXattrs {
		if err := setXattrs(fd, want, miss); err != nil {
			return err
		}
	}
	if want.Kind != tree.Symlink {
		at("mode")
		if err := unix.Chmod(handle(fd), want.Mode); err != nil {
			return fmt.Errorf("its mode: %w", err)
		}
	}
	if want.AnyTime {
		return nil
	}
	at("time")
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: want.Sec, Nsec: want.Nsec}}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, handle(fd), times, 0); err != nil {
		return fmt.Errorf("its time: %w", err)
	}
	return nil
}

// setXattrs gives a name the attributes that it is to have, and no others.
func setXattrs(fd int, want *node, miss func(name string, err error)) error {
	now, err := xattrs(fd)
	if err != nil {
		return err
	}
	have := map[bytesName][]byte{}
	for _, x := range now {
		have[x.Name] = x.Value
	}
	for _, x := range want.Xattrs {
		value, is := have[x.Name]
		delete(have, x.Name)
		if is && bytes.Equal(value, x.Value) {
			continue
		}
		at("attribute")
		if err := unix.Setxattr(handle(fd), string(x.Name), x.Value, 0); err != nil {
			if full(err) {
				return err
			}
			miss(string(x.Name), err)
		}
	}
	for name := range have {
		if labelled(string(name)) {
			continue
		}
		at("attribute")
		if err := unix.Removexattr(handle(fd), string(name)); err != nil {
			miss(string(name), err)
		}
	}
	return nil
}

// full reports whether a disk, or what a user may have of it, is full.
func full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
