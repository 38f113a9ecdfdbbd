package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tree"
)

// ownerRights are the rights that an owner gets for a while.
const ownerRights = 0o700

// inside is how each name is resolved: never out of the directory, through a link, or into what is mounted there.
const inside = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// target is the directory that is changed. It is opened once, and held.
type target struct {
	fd       int
	path     string
	dev, ino uint64
	uid, gid uint32

	in string // the directory that at is open for
	at int    // below 0: none
	// rights is asked, if it is not root who works, when a directory lacks rights for its owner. It gives them.
	rights func(path string, fd int, mode uint32) error
	opened map[string]uint32 // what has other rights for a while, with the mode that it really has
}

// openTarget opens and locks a directory.
func openTarget(path string) (*target, error) {
	real, err := filepath.Abs(path)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open(real, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: real, Err: err}
	}
	t := &target{fd: fd, path: real, at: -1}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		t.dev, t.ino, t.uid, t.gid = uint64(st.Dev), st.Ino, st.Uid, st.Gid
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == unix.EWOULDBLOCK {
		err = ErrBusy
	}
	if err == nil {
		probe, e := unix.Openat2(fd, ".", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: inside})
		if e == nil {
			unix.Close(probe)
		} else {
			err = fmt.Errorf("openat2, of Linux 5.6 and later: %w", e)
		}
	}
	if err != nil {
		t.close()
		return nil, fmt.Errorf("%s: %w", shown(real), err)
	}
	return t, nil
}

func (t *target) close() {
	t.leave()
	unix.Close(t.fd)
}

// leave forgets the directory that is open.
func (t *target) leave() {
	if t.at >= 0 {
		unix.Close(t.at)
		t.at = -1
	}
}

// errMount means that a name is, or is below, a place where something else is mounted.
var errMount = errors.New("it is, or is below, a mount point")

// errSymlink means that a directory above is a symbolic link.
var errSymlink = errors.New("a directory above it is a symbolic link")

// errParent means that a directory above is none.
var errParent = errors.New("a directory above it is not there, or is no directory")

// noDir reports whether a directory above a name is none.
func noDir(err error) bool { return errors.Is(err, errParent) || errors.Is(err, errSymlink) }

// dir opens a directory below the target, for names in it, and keeps it open until another one is asked for.
func (t *target) dir(dir string) (int, error) {
	if t.at >= 0 && t.in == dir {
		return t.at, nil
	}
	from, rest, at := t.fd, dir, ""
	if t.at >= 0 && within(dir, t.in) && t.in != root {
		from, rest, at = t.at, dir[len(t.in)+1:], t.in+"/"
	}
	fd, err := unix.FcntlInt(uintptr(from), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil && dir == root {
		err = t.grant(root, fd, true)
	}
	for err == nil && dir != root && rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		at += name
		next, e := unix.Openat2(fd, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: inside})
		unix.Close(fd)
		if fd = next; e != nil {
			return -1, fmt.Errorf("%w: %s", above(e), shown(at))
		}
		err = t.grant(at, fd, rest == "")
		at += "/"
	}
	if err != nil {
		if fd >= 0 {
			unix.Close(fd)
		}
		return -1, err
	}
	t.leave()
	t.in, t.at = dir, fd
	return fd, nil
}

// above is the error of a directory above a name.
func above(err error) error {
	switch err {
	case unix.ELOOP:
		return errSymlink
	case unix.EXDEV:
		return errMount
	case unix.ENOENT, unix.ENOTDIR:
		return errParent
	}
	return err
}

// grant gives the owner the rights that work in a directory needs. Root needs none.
func (t *target) grant(path string, fd int, last bool) error {
	if t.rights == nil || os.Geteuid() == 0 {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	need := uint32(0o100)
	if last {
		need = ownerRights
	}
	if st.Mode&need == need || int(st.Uid) != os.Geteuid() {
		return nil
	}
	return t.rights(path, fd, st.Mode&0o7777)
}

// seen is what a name is now.
type seen struct {
	node
	dev, ino, links uint64
}

// look says what a name is, nil if it is not there. read: with the digest of a file.
func (t *target) look(path string, read bool) (*seen, error) {
	fd, st, err := t.open(path)
	if err != nil || fd < 0 {
		return nil, err
	}
	defer unix.Close(fd)
	s := &seen{dev: uint64(st.Dev), ino: st.Ino, links: uint64(st.Nlink)}
	s.Mode, s.UID, s.GID = st.Mode&0o7777, st.Uid, st.Gid
	s.Sec, s.Nsec = int64(st.Mtim.Sec), int64(st.Mtim.Nsec)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		s.Kind, s.Size = tree.File, uint64(st.Size)
	case unix.S_IFDIR:
		s.Kind = tree.Dir
	case unix.S_IFLNK:
		s.Kind = tree.Symlink
		target := make([]byte, 64<<10)
		n, err := unix.Readlinkat(fd, "", target)
		if err != nil {
			return nil, err
		}
		s.Target = bytesName(target[:n])
	case unix.S_IFIFO:
		s.Kind = tree.FIFO
	case unix.S_IFSOCK:
		s.Kind = tree.Socket
	case unix.S_IFCHR:
		s.Kind = tree.Char
	default:
		s.Kind = tree.Block
	}
	if mode, ok := t.opened[path]; ok && s.Mode == mode|ownerRights {
		s.Mode = mode
	}
	if s.Xattrs, err = xattrs(fd); err != nil {
		return nil, err
	}
	if s.Kind == tree.File && read {
		s.SHA256, err = t.read(path, s)
	}
	return s, err
}

// open opens a name without a right to anything but to ask what it is. The descriptor is below 0 if the name is not there.
func (t *target) open(path string) (int, *unix.Stat_t, error) {
	fd, err := -1, error(nil)
	if path == root {
		fd, err = unix.FcntlInt(uintptr(t.fd), unix.F_DUPFD_CLOEXEC, 0)
	} else {
		dir, base := cut(path)
		in, e := t.dir(dir)
		if e != nil {
			return -1, nil, e
		}
		fd, err = unix.Openat2(in, base, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: inside})
	}
	switch err {
	case nil:
	case unix.ENOENT:
		return -1, nil, nil
	case unix.EXDEV:
		return -1, nil, errMount
	default:
		return -1, nil, err
	}
	st := new(unix.Stat_t)
	if err := unix.Fstat(fd, st); err != nil {
		unix.Close(fd)
		return -1, nil, err
	}
	return fd, st, nil
}

// errChanges means that others write.
var errChanges = errors.New("it changes while it is read")

// read digests a file.
func (t *target) read(path string, s *seen) (string, error) {
	f, err := t.file(path, s)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, int64(s.Size)+1))
	if err == nil && uint64(n) != s.Size {
		err = errChanges
	}
	return digestOf(h.Sum(nil)), err
}

// file opens a file that was looked at, and nothing else.
func (t *target) file(path string, s *seen) (*os.File, error) {
	dir, base := cut(path)
	in, err := t.dir(dir)
	if err != nil {
		return nil, err
	}
	how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC, Resolve: inside}
	fd, err := unix.Openat2(in, base, how)
	if err == unix.EACCES && t.rights != nil && int(s.UID) == os.Geteuid() && os.Geteuid() != 0 {
		if err = t.readable(path, s); err == nil {
			fd, err = unix.Openat2(in, base, how)
		}
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), base)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || uint64(st.Dev) != s.dev || st.Ino != s.ino {
		f.Close()
		return nil, errChanges
	}
	return f, nil
}

// readable lets the owner read a file.
func (t *target) readable(path string, s *seen) error {
	fd, st, err := t.open(path)
	if err != nil || fd < 0 {
		return errors.Join(err, errChanges)
	}
	defer unix.Close(fd)
	if st.Ino != s.ino {
		return errChanges
	}
	return t.rights(path, fd, st.Mode&0o7777)
}

// names lists what is in a directory.
func (t *target) names(path string) ([]string, error) {
	fd, err := t.dir(path)
	if err != nil {
		return nil, err
	}
	if fd, err = unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	return f.Readdirnames(-1)
}
