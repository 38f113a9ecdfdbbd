//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// include/uapi/linux/userfaultfd.h
const (
	uffdioAPI      = 0xc018aa3f
	uffdioRegister = 0xc020aa00
	uffdioCopy     = 0xc028aa03
	uffdVersion    = 0xaa
	uffdMissing    = 1
)

// lateFlags are those of no other open.
const lateFlags = unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NOCTTY | unix.O_NONBLOCK

// lateText is memory that a call waits for, until it gets its text.
type lateText struct {
	fd   int
	page []byte
}

func newLateText(t *testing.T) *lateText {
	t.Helper()
	fd, _, no := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if no != 0 {
		testkit.Missing(t, "userfaultfd", no)
	}
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	testkit.Must(t, err)
	l := &lateText{int(fd), page}
	t.Cleanup(func() { testkit.Must(t, errors.Join(unix.Close(l.fd), unix.Munmap(l.page))) })
	l.control(t, uffdioAPI, &[3]uint64{uffdVersion})
	l.control(t, uffdioRegister, &[4]uint64{l.address(), uint64(len(page)), uffdMissing})
	return l
}

func (l *lateText) address() uint64 { return uint64(uintptr(unsafe.Pointer(&l.page[0]))) }

func (l *lateText) control(t *testing.T, what uintptr, arg any) {
	t.Helper()
	var p unsafe.Pointer
	switch a := arg.(type) {
	case *[3]uint64:
		p = unsafe.Pointer(a)
	case *[4]uint64:
		p = unsafe.Pointer(a)
	case *[5]uint64:
		p = unsafe.Pointer(a)
	}
	if _, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), what, uintptr(p)); no != 0 {
		t.Fatalf("userfaultfd %#x: %v", what, no)
	}
}

// open opens the name that the memory gets while the call waits for it, after what happens then.
func (l *lateText) open(t *testing.T, name string, then func()) int {
	t.Helper()
	got := make(chan int)
	go func() {
		fd, _, no := unix.Syscall6(unix.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(&l.page[0])), lateFlags, 0, 0, 0)
		if no != 0 {
			fd = ^uintptr(0)
		}
		got <- int(fd)
	}()
	time.Sleep(50 * time.Millisecond) // it waits: its number is not chosen yet
	then()
	text := make([]byte, len(l.page))
	copy(text, name)
	l.control(t, uffdioCopy, &[5]uint64{l.address(), uint64(uintptr(unsafe.Pointer(&text[0]))), uint64(len(text))})
	return <-got
}

// numberOf opens a file by a call under which another thread takes away what has its number, and returns the call's record.
func (l *lateText) numberOf(t *testing.T, s *Session, fd int, file string, taken func()) schemas.RawEvent {
	t.Helper()
	got := l.open(t, file, taken)
	defer unix.Close(got)
	if got != fd {
		t.Fatalf("descriptor %d, expected %d", got, fd)
	}
	var told []schemas.RawEvent
	for _, e := range eventsOf(t, s, schemas.OpOpenat) {
		if e.Flags == lateFlags {
			told = append(told, e)
		}
	}
	if len(told) != 1 {
		t.Fatalf("%d records of the call", len(told))
	}
	return told[0]
}

func emptyFile(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(dir+"/file", nil, 0o600))
	return dir + "/file"
}

// A call that opens a file gets the number of a pipe that another thread closed under it: nothing of the call was taken away.
func TestNumberOfAPipe(t *testing.T) {
	file, s := emptyFile(t), attachOwn(t, false)
	l := newLateText(t)
	var p [2]int
	testkit.Must(t, unix.Pipe2(p[:], unix.O_CLOEXEC))
	e := l.numberOf(t, s, p[0], file, func() { testkit.Must(t, errors.Join(unix.Close(p[0]), unix.Close(p[1]))) })
	if string(e.Path) != file || e.Marks != 0 {
		t.Errorf("told %q, %q with marks %#x", e.Path, e.UserPath, e.Marks)
	}
}

// What io_uring closes under a call can be what the call had opened, unless that is known to be another one: at once, or later
// by a worker, with and without a completion.
func TestNumberThatARingClosed(t *testing.T) {
	for _, flags := range []uint8{0, 1 << 4, 1<<4 | 1<<6} { // IOSQE_ASYNC, IOSQE_CQE_SKIP_SUCCESS
		for _, known := range []bool{true, false} {
			numberThatARingClosed(t, flags, known)
		}
	}
}

func numberThatARingClosed(t *testing.T, flags uint8, known bool) {
	t.Helper()
	file, s := emptyFile(t), attachOwn(t, false)
	defer s.Close()
	if s.IOUringForm == "" {
		testkit.Missing(t, "the tracepoints of io_uring")
	}
	u, err := newUring()
	if err != nil {
		testkit.Missing(t, "io_uring", err)
	}
	defer u.close()
	l := newLateText(t)
	fd, err := unix.Open(file, unix.O_RDWR|unix.O_CLOEXEC, 0)
	testkit.Must(t, err)
	if !known { // nobody knows when a copy was put there
		first := fd
		fd, err = unix.FcntlInt(uintptr(first), unix.F_DUPFD_CLOEXEC, 0)
		testkit.Must(t, err)
		defer unix.Close(first)
	}
	e := l.numberOf(t, s, fd, file, func() {
		closes := uringEntry{opcode: 19, flags: flags, fd: int32(fd)}
		if flags&(1<<6) == 0 {
			testkit.Must(t, u.do(closes))
			return
		}
		testkit.Must(t, u.submit(closes, 0))
		testkit.Await(t, "the close", func() bool {
			_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			return err != nil
		})
	})
	if exact := string(e.Path) == file && e.Marks == 0; exact != known || (!known && e.Marks&schemas.MarkChanged == 0) {
		t.Errorf("flags %#x, known %v: told %q, %q with marks %#x", flags, known, e.Path, e.UserPath, e.Marks)
	}
}
