package tree

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Scan describes what is below a directory, sorted by the bytes of the paths, without following any link. Nobody may
// change the tree meanwhile: that is an error where it is noticed. It has one directory open at a time, and takes names of
// any length and depth.
func Scan(root string, o Options) ([]Entry, error) {
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: root, Err: err}
	}
	s := &scan{opt: o, dir: fd, root: root, inodes: map[inode][]int{}, buf: make([]byte, 256<<10)}
	defer func() { unix.Close(s.dir) }()
	if err := s.run(); err != nil {
		return nil, err
	}
	s.link()
	return sorted(s.list), nil
}

type inode struct{ dev, ino uint64 }

// level is a directory on the way down.
type level struct {
	id    inode
	path  string   // with a slash at its end, except that of the root
	names []string // that were not looked at yet, the last one first
}

type scan struct {
	opt    Options
	dir    int // the directory that is open
	root   string
	levels []level
	list   []Entry
	inodes map[inode][]int // files with several links: their places in list
	buf    []byte
}

func (s *scan) run() error {
	var st unix.Stat_t
	if err := unix.Fstat(s.dir, &st); err != nil {
		return s.failed("stat", "", err)
	}
	dev := st.Dev
	if err := s.enter(idOf(&st), ""); err != nil {
		return s.failed("read", "", err)
	}
	for len(s.levels) > 0 {
		l := &s.levels[len(s.levels)-1]
		if len(l.names) == 0 {
			if err := s.leave(); err != nil {
				return err
			}
			continue
		}
		name := l.names[len(l.names)-1]
		l.names = l.names[:len(l.names)-1]
		if len(s.list) == MaxEntries {
			return ErrTooMany
		}
		if err := s.name(name, l.path, dev); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) failed(op, path string, err error) error {
	return &os.PathError{Op: op, Path: s.root + "/" + path, Err: err}
}

func idOf(st *unix.Stat_t) inode { return inode{st.Dev, st.Ino} }

// set takes what stat(2) says of any kind.
func (e *Entry) set(st *unix.Stat_t) {
	e.Mode, e.UID, e.GID = st.Mode&0o7777, st.Uid, st.Gid
	e.Modified, e.Changed = st.Mtim.Nano(), st.Ctim.Nano()
}

// Root describes the directory itself that a Scan describes what is below of. Its path is ".".
func Root(root string) (Entry, error) {
	var st unix.Stat_t
	if err := unix.Stat(root, &st); err != nil {
		return Entry{}, &os.PathError{Op: "stat", Path: root, Err: err}
	}
	e := Entry{Path: ".", Kind: Dir}
	e.set(&st)
	return e, nil
}

// enter reads the names of the directory that is open.
func (s *scan) enter(id inode, path string) error {
	l := level{id: id, path: path}
	for {
		n, err := unix.Getdents(s.dir, s.buf)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		_, _, l.names = unix.ParseDirent(s.buf[:n], -1, l.names)
	}
	slices.SortFunc(l.names, func(a, b string) int { return strings.Compare(b, a) })
	s.levels = append(s.levels, l)
	return nil
}

// leave goes back to the directory above.
func (s *scan) leave() error {
	s.levels = s.levels[:len(s.levels)-1]
	if len(s.levels) == 0 {
		return nil
	}
	up := &s.levels[len(s.levels)-1]
	fd, err := unix.Openat(s.dir, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return s.failed("open", up.path, err)
	}
	unix.Close(s.dir)
	s.dir = fd
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || idOf(&st) != up.id {
		return s.failed("open", up.path, ErrChanged)
	}
	return nil
}

// name describes one name of the directory that is open, and enters it if it is one.
func (s *scan) name(name, above string, dev uint64) error {
	e := Entry{Path: above + name}
	var st unix.Stat_t
	if err := unix.Fstatat(s.dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return s.failed("stat", e.Path, changed(err))
	}
	e.set(&st)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		e.Kind, e.Size = File, uint64(st.Size)
		return s.file(&e, name, &st)
	case unix.S_IFDIR:
		if e.Kind, e.Mount = Dir, st.Dev != dev; e.Mount {
			break
		}
		return s.below(&e, name, &st)
	case unix.S_IFLNK:
		e.Kind = Symlink
		target := make([]byte, max(st.Size, 255)+1)
		n, err := unix.Readlinkat(s.dir, name, target)
		if err != nil {
			return s.failed("readlink", e.Path, changed(err))
		}
		e.Target = string(target[:n])
	case unix.S_IFIFO:
		e.Kind = FIFO
	case unix.S_IFSOCK:
		e.Kind = Socket
	case unix.S_IFCHR:
		e.Kind, e.Device = Char, st.Rdev
	case unix.S_IFBLK:
		e.Kind, e.Device = Block, st.Rdev
	default:
		return s.failed("stat", e.Path, fmt.Errorf("mode %o is of no known kind", st.Mode))
	}
	s.list = append(s.list, e)
	return nil
}

// changed is the error of a name that was there a moment before.
func changed(err error) error {
	switch err {
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EINVAL:
		return ErrChanged
	}
	return err
}

// open opens what was looked at, and nothing else.
func (s *scan) open(name string, st *unix.Stat_t, flags int) (int, error) {
	fd, err := unix.Openat(s.dir, name, flags|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, changed(err)
	}
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil || idOf(&now) != idOf(st) || now.Mode&unix.S_IFMT != st.Mode&unix.S_IFMT {
		unix.Close(fd)
		return -1, ErrChanged
	}
	return fd, nil
}

// below adds a directory, and enters it.
func (s *scan) below(e *Entry, name string, st *unix.Stat_t) error {
	if len(e.Path) > MaxPath {
		e.Unread = fmt.Sprintf("its path has more than %d bytes", MaxPath)
		s.list = append(s.list, *e)
		return nil
	}
	fd, err := s.open(name, st, unix.O_DIRECTORY)
	if err == ErrChanged {
		return s.failed("open", e.Path, err)
	}
	if err == nil { // without the right to search it, its names are known, and no more
		var st unix.Stat_t
		if err = unix.Fstatat(fd, ".", &st, 0); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		e.Unread = err.Error()
		s.list = append(s.list, *e)
		return nil
	}
	s.list = append(s.list, *e)
	unix.Close(s.dir)
	s.dir = fd
	if err := s.enter(idOf(st), e.Path+"/"); err != nil {
		return s.failed("read", e.Path, err)
	}
	return nil
}

// file adds a file with its digest. One with several names is read once.
func (s *scan) file(e *Entry, name string, st *unix.Stat_t) error {
	id, links := idOf(st), uint64(st.Nlink)
	if s.opt.Inode != nil {
		if dev, ino, n, ok := s.opt.Inode(e.Path); ok {
			id, links = inode{dev, ino}, n
		}
	}
	if links > 1 {
		s.inodes[id] = append(s.inodes[id], len(s.list))
		if len(s.inodes[id]) > 1 {
			s.list = append(s.list, *e)
			return nil
		}
	}
	if s.opt.Known != nil {
		if sum, ok := s.opt.Known(e); ok {
			e.SHA256 = sum
			s.list = append(s.list, *e)
			return nil
		}
	}
	fd, err := s.open(name, st, 0)
	if err == ErrChanged {
		return s.failed("open", e.Path, err)
	}
	if err != nil {
		e.Unread = err.Error()
		s.list = append(s.list, *e)
		return nil
	}
	f := os.NewFile(uintptr(fd), e.Path)
	defer f.Close()
	if err := s.read(e, f); err != nil {
		return err
	}
	s.list = append(s.list, *e)
	return nil
}

// read digests the bytes of a file, and keeps them where Options say so.
func (s *scan) read(e *Entry, f *os.File) error {
	h := sha256.New()
	var to io.Writer = h
	var kept Kept
	if s.opt.Keep != nil {
		var err error
		if kept, err = s.opt.Keep(); err != nil {
			return err
		}
		to = io.MultiWriter(h, kept)
	}
	from := &source{r: io.LimitReader(f, int64(e.Size)+1)}
	n, err := io.CopyBuffer(to, from, s.buf)
	switch {
	case from.err != nil:
		e.Unread, err = from.err.Error(), nil
	case err == nil && uint64(n) != e.Size:
		err = s.failed("read", e.Path, ErrChanged)
	case err == nil:
		h.Sum(e.SHA256[:0])
		if kept == nil {
			return nil
		}
		if err = kept.Done(&e.SHA256); errors.Is(err, ErrNotKept) {
			e.SHA256, e.Unread, err = [32]byte{}, err.Error(), nil
		}
		return err
	}
	if kept != nil {
		if done := kept.Done(nil); err == nil {
			err = done
		}
	}
	return err
}

// source remembers an error of reading, which is not one of writing.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// link tells which names are one file. The first in byte order has the digest.
func (s *scan) link() {
	for _, places := range s.inodes {
		first := slices.MinFunc(places, func(a, b int) int { return strings.Compare(s.list[a].Path, s.list[b].Path) })
		read := s.list[places[0]]
		for _, i := range places {
			e := &s.list[i]
			if e.SHA256, e.Unread = [32]byte{}, ""; i == first {
				e.SHA256, e.Unread = read.SHA256, read.Unread
			} else {
				e.Link = s.list[first].Path
			}
		}
	}
}
