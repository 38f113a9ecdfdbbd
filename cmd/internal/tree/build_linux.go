package tree

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Open opens a file of a tree for reading, by a path as a Scan gives it. It follows no link, and takes paths of any length.
func Open(root int, path string) (*os.File, error) {
	fd, err := unix.Openat(root, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for err == nil {
		name, rest, more := strings.Cut(path, "/")
		flags := unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
		if more {
			flags |= unix.O_DIRECTORY
		}
		var next int
		next, err = unix.Openat(fd, name, flags, 0)
		unix.Close(fd)
		if err == nil && !more {
			return os.NewFile(uintptr(next), name), nil
		}
		fd, path = next, rest
	}
	return nil, &os.PathError{Op: "open", Path: path, Err: err}
}

// Build makes a tree below a directory, which must be empty: entries are as a Scan gives them, and open returns the bytes
// of a file. All of it belongs to owner, and if that is nil to those whom the entries name. Devices, and what could not be
// read, are errors. After an error the directory holds a part.
func Build(dir string, entries []Entry, open func(*Entry) (io.ReadCloser, error), owner *Owner) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	u := &unpack{root: fd, left: 1<<63 - 1, at: -1}
	defer u.close()
	for i := range entries {
		e := &entries[i]
		if u.owner = owner; owner == nil {
			u.owner = &Owner{int(e.UID), int(e.GID)}
		}
		if err := u.build(e, open); err != nil {
			return fmt.Errorf("%.200q: %w", e.Path, err)
		}
	}
	return u.finish()
}

func (u *unpack) build(e *Entry, open func(*Entry) (io.ReadCloser, error)) error {
	if e.Unread != "" {
		return fmt.Errorf("it could not be read: %s", e.Unread)
	}
	h := &tar.Header{Name: e.Path, Mode: int64(e.Mode), Size: int64(e.Size), Linkname: e.Target, ModTime: time.Unix(0, e.Modified)}
	var content io.ReadCloser = io.NopCloser(strings.NewReader(""))
	switch e.Kind {
	case Dir:
		h.Typeflag = tar.TypeDir
	case Symlink:
		h.Typeflag = tar.TypeSymlink
	case FIFO:
		h.Typeflag = tar.TypeFifo
	case Socket:
		h.Typeflag = typeSocket
	case File:
		if e.Link != "" {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, e.Link, 0
			break
		}
		h.Typeflag = tar.TypeReg
		f, err := open(e)
		if err != nil {
			return err
		}
		content = f
	default:
		return errDevice
	}
	defer content.Close()
	return u.entry(h, &sized{r: content, left: int64(h.Size)})
}

// typeSocket is no type of a tar.
const typeSocket = 's'

// sized is a reader whose bytes must be as many as were announced.
type sized struct {
	r    io.Reader
	left int64
}

func (s *sized) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.left -= int64(n)
	if s.left < 0 || err == io.EOF && s.left != 0 {
		return n, ErrChanged
	}
	return n, err
}

// Copy copies what is below a directory, with modes and times, to another one, which must be empty. The copies belong to
// owner, and if that is nil to those to whom the originals belong.
func Copy(from int, to string, owner *Owner) error {
	list, err := Scan(fmt.Sprintf("/proc/self/fd/%d", from), Options{Known: func(*Entry) ([32]byte, bool) { return [32]byte{}, true }})
	if err != nil {
		return err
	}
	return Build(to, list, func(e *Entry) (io.ReadCloser, error) { return Open(from, e.Path) }, owner)
}

// Decompress returns the tar that a file holds, which may be gzipped.
func Decompress(f io.Reader) (io.Reader, error) {
	r := bufio.NewReaderSize(f, 64<<10)
	if head, err := r.Peek(2); err != nil || head[0] != 0x1f || head[1] != 0x8b {
		if errors.Is(err, io.EOF) {
			err = nil // the tar is too short, which Unpack says
		}
		return r, err
	}
	return gzip.NewReader(r)
}
