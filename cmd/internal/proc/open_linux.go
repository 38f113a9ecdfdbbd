package proc

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// program is what is executed: a path, or an open file, so that what was checked is what runs.
type program struct {
	path string
	file *os.File // nil: by path
	// script says that the kernel hands the path to an interpreter, which must find the file open.
	script bool
}

func (p *program) close() {
	if p.file != nil {
		p.file.Close()
	}
}

var (
	errDenied  = errors.New("denied")
	errNotFile = errors.New("it is no regular file")
)

// open opens the program that a verdict allows. The error is errDenied if no verdict holds for the file.
func open(cwd string, v *Verdict) (*program, *Verdict, error) {
	list := append([]Verdict{*v}, v.Next...)
	for i := range list {
		p, err := openOne(cwd, &list[i])
		if err == errDenied {
			continue
		}
		return p, &list[i], err
	}
	return nil, nil, errDenied
}

func openOne(cwd string, v *Verdict) (_ *program, err error) {
	name := v.Program
	if !filepath.IsAbs(name) && cwd != "" {
		name = filepath.Join(cwd, name)
	}
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	p := &program{file: os.NewFile(uintptr(fd), name)}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errNotFile
	}
	self := fmt.Sprintf("/proc/self/fd/%d", fd)
	if v.Below != "" && !sameTree(self, cwd, v.Below) {
		return nil, errDenied
	}
	content, err := os.OpenFile(self, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		defer content.Close()
		var head [2]byte
		n, _ := io.ReadFull(content, head[:])
		p.script = string(head[:n]) == "#!"
	} else if v.SHA256 != "" {
		return nil, errDenied // what cannot be read has no digest
	}
	if v.SHA256 != "" {
		h := sha256.New()
		if _, err := content.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		if _, err := io.Copy(h, content); err != nil {
			return nil, err
		}
		if hex.EncodeToString(h.Sum(nil)) != v.SHA256 {
			return nil, errDenied
		}
	}
	p.path = self
	return p, nil
}

// sameTree reports whether a file is still below a directory when all links are followed.
func sameTree(self, cwd, dir string) bool {
	if !filepath.IsAbs(dir) && cwd != "" {
		dir = filepath.Join(cwd, dir)
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	file, err1 := os.Readlink(self)
	root, err2 := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return err1 == nil && err2 == nil && (root == "/" || strings.HasPrefix(file, root+"/"))
}
