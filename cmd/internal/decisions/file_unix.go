//go:build unix

package decisions

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// logFD is a descriptor of the log.
type logFD struct {
	fd   int
	fifo bool
}

// Open opens FILE for appending, or takes over descriptor N.
func Open(file string, fd int) (File, error) {
	if file == "" {
		return takeLog(fd)
	}
	l, err := openNamed(file)
	if err != nil {
		return nil, err
	}
	if err := l.check(); err != nil {
		unix.Close(l.fd)
		return nil, err
	}
	return l, nil
}

func openNamed(file string) (*logFD, error) {
	// O_NONBLOCK: opening a FIFO without a reader would otherwise block. Two attempts:
	// O_CREAT is used only if the file does not exist.
	const flags = unix.O_WRONLY | unix.O_APPEND | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	fd, err := unix.Open(file, flags, 0)
	if err == unix.ENOENT {
		fd, err = unix.Open(file, flags|unix.O_CREAT, 0o644)
	}
	if err == unix.ENXIO {
		return nil, errors.New("no process has this FIFO open for reading")
	}
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &logFD{fd: fd}, nil
}

// takeLog takes over an inherited descriptor.
func takeLog(fd int) (File, error) {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is not open", fd)
	}
	if flags&unix.O_ACCMODE == unix.O_RDONLY {
		return nil, fmt.Errorf("descriptor %d is open for reading only", fd)
	}
	unix.CloseOnExec(fd)
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags|unix.O_APPEND); err != nil {
		return nil, err
	}
	l := &logFD{fd: fd}
	return l, l.check()
}

// check refuses files to which a log cannot be appended.
func (l *logFD) check() error {
	var st unix.Stat_t
	if err := unix.Fstat(l.fd, &st); err != nil {
		return err
	}
	// The log and standard output may be the same terminal: this helps when trying things out.
	var out unix.Stat_t
	if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFIFO || kind == unix.S_IFREG {
		if unix.Fstat(1, &out) == nil && out.Dev == st.Dev && out.Ino == st.Ino {
			return errors.New("is the same file as standard output, which carries the protocol")
		}
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return errors.New("is a directory")
	case unix.S_IFIFO:
		l.fifo = true
	case unix.S_IFREG:
		return l.checkText()
	}
	return nil
}

// errIncomplete is an end that was cut off.
var errIncomplete = errors.New("its last line is incomplete, because a writer was interrupted; move the file away")

// checkText checks what is in a regular file.
func (l *logFD) checkText() error {
	f, err := os.Open(tool.DescriptorPath(l.fd))
	if err != nil {
		return nil // we may write the file but not read it
	}
	defer f.Close()
	if err := checkBegin(f); err != nil {
		return err
	}
	return checkEnd(f)
}

// checkEnd checks that the last line ends with an LF. Otherwise our first line would
// become part of it. Another writer may write a line at this moment, and the file grows page by
// page, so one that is incomplete is looked at again.
func checkEnd(f *os.File) error {
	for range 50 {
		st, err := f.Stat()
		if err != nil || st.Size() == 0 {
			return nil
		}
		var last [1]byte
		if _, err := f.ReadAt(last[:], st.Size()-1); err != nil || last[0] == '\n' {
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return errIncomplete
}

// WriteLine writes b with one system call. Several proxies may share a FIFO. The kernel
// keeps only short writes to a FIFO together, so the proxies lock it.
func (l *logFD) WriteLine(b []byte) (int, error) {
	if l.fifo {
		if err := retry(func() error { return unix.Flock(l.fd, unix.LOCK_EX) }); err == nil {
			defer unix.Flock(l.fd, unix.LOCK_UN)
		}
	}
	n, err := 0, error(nil)
	err = retry(func() error { n, err = unix.Write(l.fd, b); return err })
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}

func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func (l *logFD) Close() error { return unix.Close(l.fd) }
