package tree

import (
	"archive/tar"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Unpack writes what a tar holds below a directory, which must be empty. Nothing outside of it can be reached: a name that
// is absolute or has .., one below something that is no directory, one that is there already, a link to what is not
// there, and a device are errors. All of it belongs to owner, and if that is nil to the caller; whose it was where the tar was
// made says nothing here. most is how many bytes the files may have in all. After an error the directory holds a part.
func Unpack(r io.Reader, dir string, most int64, owner *Owner) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	u := &unpack{root: fd, left: most, owner: owner, at: -1}
	defer u.close()
	read := &counted{r: r}
	t, ends := tar.NewReader(read), int64(0)
	for n := 0; ; n++ {
		h, err := t.Next()
		switch {
		case err == io.EOF && read.n-ends < 2*block:
			return fmt.Errorf("the tar: %w: its end, two blocks of zeros, is missing", io.ErrUnexpectedEOF)
		case err == io.EOF:
			if err := rest(r); err != nil {
				return fmt.Errorf("the tar: %w", err)
			}
			return u.finish()
		case err != nil:
			return fmt.Errorf("the tar: %w", err)
		case n == MaxEntries:
			return ErrTooMany
		}
		if h.Typeflag == typeSocket {
			return fmt.Errorf("the tar's entry %.200q: type %q is not known", h.Name, h.Typeflag)
		}
		if err := u.entry(h, t); err != nil {
			return fmt.Errorf("the tar's entry %.200q: %w", h.Name, err)
		}
		if _, err := io.Copy(io.Discard, t); err != nil {
			return fmt.Errorf("the tar's entry %.200q: %w", h.Name, err)
		}
		ends = (read.n + block - 1) / block * block
	}
}

// maxRest bounds the zeros after the end of a tar. GNU tar fills up to 10 KiB, and what --blocking-factor says.
const maxRest = 16 << 20

// rest reads what follows the end, so that the check sum of a compressed tar is checked too. Only zeros may.
func rest(r io.Reader) error {
	buf := make([]byte, 64<<10)
	for left := maxRest; left > 0; {
		n, err := r.Read(buf)
		if slices.ContainsFunc(buf[:n], func(b byte) bool { return b != 0 }) {
			return errFollows
		}
		if left -= n; err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: more than %d bytes", errFollows, maxRest)
}

// errFollows: what follows the end of a tar is more than zeros, or too many of them.
var errFollows = errors.New("something follows its end")

// Broken reports whether an error of Decompress or Unpack says that the bytes are no tar, or not all of one. All other errors are of
// what a whole tar holds, or of the files that were to be read or made.
func Broken(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.As(err, &corrupt) || slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, tar.ErrHeader, tar.ErrFieldTooLong, gzip.ErrHeader, gzip.ErrChecksum, errFollows},
		func(e error) bool { return errors.Is(err, e) })
}

// block is the size of all parts of a tar, in bytes.
const block = 512

// counted counts what is read.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// Owner of files, by numbers.
type Owner struct{ UID, GID int }

type unpack struct {
	root  int
	left  int64
	owner *Owner

	in   string // the directory that at is open for
	at   int    // below 0: none
	dirs []later
}

// later is a directory whose mode and time are set when all is in it.
type later struct {
	path  string
	h     *tar.Header
	owner *Owner
}

// Errors of entries.
var (
	errLeaves   = errors.New("it leads out of the tree")
	errTwice    = errors.New("it is there already")
	errDevice   = errors.New("devices are not unpacked")
	errTooLarge = errors.New("the files have more bytes than are allowed")
)

func (u *unpack) close() {
	unix.Close(u.root)
	if u.at >= 0 {
		unix.Close(u.at)
	}
}

// split is the directory and the last part of a name, which must stay in the tree.
func split(name string) (dir, base string, err error) {
	if strings.HasPrefix(name, "/") || strings.IndexByte(name, 0) >= 0 {
		return "", "", errLeaves
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch part {
		case "", ".":
		case "..":
			return "", "", errLeaves
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return "", "", nil
	}
	return strings.Join(parts[:len(parts)-1], "/"), parts[len(parts)-1], nil
}

// open opens a directory of the tree, and makes what of it is missing.
func (u *unpack) open(dir string) (int, error) {
	if u.at >= 0 && dir == u.in {
		return u.at, nil
	}
	fd, err := unix.Openat(u.root, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	for part := range strings.SplitSeq(dir, "/") {
		if part == "" {
			continue
		}
		next, err := unix.Openat(fd, part, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT {
			if err = u.make(fd, part); err == nil {
				next, err = unix.Openat(fd, part, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			}
		}
		unix.Close(fd)
		if err == unix.ELOOP || err == unix.ENOTDIR {
			err = errLeaves
		}
		if err != nil {
			return -1, err
		}
		fd = next
	}
	if u.at >= 0 {
		unix.Close(u.at)
	}
	u.in, u.at = dir, fd
	return fd, nil
}

// make makes a directory that the tar did not name yet.
func (u *unpack) make(fd int, name string) error {
	err := unix.Mkdirat(fd, name, 0o755)
	if err == nil && u.owner != nil {
		err = unix.Fchownat(fd, name, u.owner.UID, u.owner.GID, unix.AT_SYMLINK_NOFOLLOW)
	}
	return err
}

// lookup finds something of the tree that is no directory. The result is the directory that it is in and its name there.
func (u *unpack) lookup(name string) (dir int, base string, err error) {
	in, base, err := split(name)
	if err != nil || base == "" {
		return -1, "", errLeaves
	}
	fd := -1
	if fd, err = unix.Openat(u.root, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return -1, "", err
	}
	for part := range strings.SplitSeq(in, "/") {
		if part == "" {
			continue
		}
		next, err := unix.Openat(fd, part, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		if err != nil {
			return -1, "", err
		}
		fd = next
	}
	return fd, base, nil
}

func (u *unpack) entry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	in, base, err := split(h.Name)
	if err != nil {
		return err
	}
	if base == "" { // the root of the tree
		if h.Typeflag != tar.TypeDir {
			return errLeaves
		}
		return nil
	}
	dir, err := u.open(in)
	if err != nil {
		return err
	}
	mode := uint32(h.Mode) & 0o7777
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		err = u.file(dir, base, h, content)
	case tar.TypeDir:
		u.dirs = append(u.dirs, later{strings.TrimPrefix(in+"/"+base, "/"), h, u.owner})
		if err = unix.Mkdirat(dir, base, 0o700); err == unix.EEXIST { // made for something in it, or said twice
			var st unix.Stat_t
			if e := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); e == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
				err = nil
			}
		}
		return twice(err)
	case tar.TypeSymlink:
		err = unix.Symlinkat(h.Linkname, dir, base)
	case tar.TypeLink:
		from, name, e := u.lookup(h.Linkname)
		if e != nil {
			return fmt.Errorf("the file that it is a link to, %.200q: %w", h.Linkname, e)
		}
		defer unix.Close(from)
		return twice(unix.Linkat(from, name, dir, base, 0))
	case tar.TypeFifo:
		err = unix.Mknodat(dir, base, unix.S_IFIFO|0o600, 0)
	case typeSocket:
		err = unix.Mknodat(dir, base, unix.S_IFSOCK|0o600, 0)
	case tar.TypeChar, tar.TypeBlock:
		return errDevice
	default:
		return fmt.Errorf("type %q is not known", h.Typeflag)
	}
	if err != nil {
		return twice(err)
	}
	return u.attributes(dir, base, h, mode)
}

func twice(err error) error {
	if err == unix.EEXIST {
		return errTwice
	}
	return err
}

// attributes sets the owner, then the mode, which a change of the owner would cut, then the time.
func (u *unpack) attributes(dir int, base string, h *tar.Header, mode uint32) error {
	if u.owner != nil {
		if err := unix.Fchownat(dir, base, u.owner.UID, u.owner.GID, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	if h.Typeflag != tar.TypeSymlink {
		if err := unix.Fchmodat(dir, base, mode, 0); err != nil {
			return err
		}
	}
	when := unix.NsecToTimespec(h.ModTime.UnixNano())
	if h.ModTime.Before(time.Unix(0, 0)) || h.ModTime.Year() > 2200 {
		when = unix.Timespec{}
	}
	return unix.UtimesNanoAt(dir, base, []unix.Timespec{when, when}, unix.AT_SYMLINK_NOFOLLOW)
}

func (u *unpack) file(dir int, base string, h *tar.Header, content io.Reader) error {
	if u.left -= h.Size; h.Size < 0 || u.left < 0 {
		return errTooLarge
	}
	fd, err := unix.Openat(dir, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), base)
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// finish gives directories what they have, those in others first.
func (u *unpack) finish() error {
	slices.SortStableFunc(u.dirs, func(a, b later) int { return strings.Compare(b.path, a.path) })
	for _, d := range u.dirs {
		dir, base, err := u.lookup(d.path)
		if err == nil {
			u.owner = d.owner
			err = u.attributes(dir, base, d.h, uint32(d.h.Mode)&0o7777)
			unix.Close(dir)
		}
		if err != nil {
			return fmt.Errorf("the tar's entry %.200q: %w", d.path, err)
		}
	}
	return nil
}
