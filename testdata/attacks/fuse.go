//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Operations of FUSE (include/uapi/linux/fuse.h).
const (
	fuseLookup      = 1
	fuseForget      = 2
	fuseGetattr     = 3
	fuseReadlink    = 5
	fuseMkdir       = 9
	fuseUnlink      = 10
	fuseRename      = 12
	fuseOpen        = 14
	fuseRead        = 15
	fuseRelease     = 18
	fuseFlush       = 25
	fuseInit        = 26
	fuseOpendir     = 27
	fuseReleasedir  = 29
	fuseBatchForget = 42
)

const (
	fuseRoot     = 1 // the number of the root
	fuseDirectIO = 1
	fuseMajor    = 7
	fuseMinor    = 31
)

// fuseServer is a file system whose answers nobody keeps: the kernel asks again at each lookup.
type fuseServer struct {
	dir    string
	fd     int
	lookup func(name string) node // what a name is, this time
	nodes  []node                 // by number
	mu     sync.Mutex
	asked  []string // what the kernel asked for: the witness
}

// node is a file, a directory or a symbolic link. Its zero value does not exist.
type node struct {
	mode uint32
	text string // contents or target
	read func() // what happens before its contents are read, if anything
}

type fuseIn struct {
	Len, Opcode          uint32
	Unique, Node         uint64
	UID, GID, PID, Extra uint32
}

type fuseAttr struct {
	Ino, Size, Blocks, Atime, Mtime, Ctime                                     uint64
	AtimeNS, MtimeNS, CtimeNS, Mode, Links, UID, GID, Device, BlockSize, Flags uint32
}

// mountFuse mounts the file system and serves it until it is unmounted.
func mountFuse(dir string, lookup func(name string) node) (*fuseServer, error) {
	s := &fuseServer{dir: dir, lookup: lookup, nodes: []node{{}, {mode: unix.S_IFDIR | 0o777}}}
	var err error
	if s.fd, err = unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return nil, err
	}
	if err = os.Mkdir(dir, 0o777); err == nil {
		err = unix.Mount("attack", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", s.fd))
	}
	if err != nil {
		unix.Close(s.fd)
		return nil, err
	}
	go s.serve()
	return s, nil
}

// end unmounts it, and gives the names that were asked for.
func (s *fuseServer) end() []string {
	unix.Unmount(s.dir, unix.MNT_DETACH)
	unix.Close(s.fd)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *fuseServer) serve() {
	buf := make([]byte, 1<<20)
	for {
		n, err := unix.Read(s.fd, buf)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil || n < binary.Size(fuseIn{}) {
			return // it is unmounted
		}
		var in fuseIn
		r := bytes.NewReader(buf[:n])
		binary.Read(r, binary.NativeEndian, &in)
		if in.Opcode == fuseForget || in.Opcode == fuseBatchForget {
			continue
		}
		body, no := s.answer(&in, buf[binary.Size(in):n])
		out := new(bytes.Buffer)
		binary.Write(out, binary.NativeEndian, struct {
			Len    uint32
			Error  int32
			Unique uint64
		}{uint32(16 + len(body)), -int32(no), in.Unique})
		out.Write(body)
		unix.Write(s.fd, out.Bytes())
	}
}

func pack(parts ...any) []byte {
	b := new(bytes.Buffer)
	for _, p := range parts {
		binary.Write(b, binary.NativeEndian, p)
	}
	return b.Bytes()
}

func (s *fuseServer) attr(ino uint64) fuseAttr {
	n := s.nodes[ino]
	return fuseAttr{Ino: ino, Size: uint64(len(n.text)), Mode: n.mode, Links: 1, BlockSize: 4096}
}

func (s *fuseServer) note(what, name string) {
	s.mu.Lock()
	s.asked = append(s.asked, what+" "+name)
	s.mu.Unlock()
}

// entry is the answer that has a node.
func (s *fuseServer) entry(n node) []byte {
	s.nodes = append(s.nodes, n)
	ino := uint64(len(s.nodes) - 1)
	return pack(ino, uint64(0), [3]uint64{}, s.attr(ino))
}

func (s *fuseServer) answer(in *fuseIn, arg []byte) ([]byte, unix.Errno) {
	name := func(skip int) string { return strings.TrimRight(string(arg[min(skip, len(arg)):]), "\x00") }
	switch in.Opcode {
	case fuseInit:
		return pack([4]uint32{fuseMajor, fuseMinor, 0, 0}, [2]uint16{}, [2]uint32{4096, 1}, [2]uint16{}, [8]uint32{}), 0
	case fuseLookup:
		n := s.lookup(name(0))
		if n.mode == 0 {
			return nil, unix.ENOENT
		}
		return s.entry(n), 0
	case fuseMkdir:
		s.note("mkdir", name(8))
		return s.entry(node{mode: unix.S_IFDIR | 0o777}), 0
	case fuseUnlink:
		s.note("unlink", name(0))
	case fuseRename:
		s.note("rename", strings.ReplaceAll(name(8), "\x00", " "))
	case fuseGetattr:
		return pack([2]uint64{}, s.attr(in.Node)), 0
	case fuseReadlink:
		return []byte(s.nodes[in.Node].text), 0
	case fuseOpen, fuseOpendir:
		s.note("open", s.nodes[in.Node].text)
		return pack(uint64(0), [2]uint32{fuseDirectIO}), 0
	case fuseRead:
		offset := binary.NativeEndian.Uint64(arg[8:])
		text := s.nodes[in.Node].text
		if read := s.nodes[in.Node].read; read != nil {
			read()
		}
		return []byte(text[min(offset, uint64(len(text))):]), 0
	case fuseFlush, fuseRelease, fuseReleasedir:
	default:
		return nil, unix.ENOSYS
	}
	return nil, 0
}
