//go:build linux && (amd64 || arm64)

package bpf

import (
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/testdata/workload/uring"
)

// What a program with rights over the kernel opens for writing, and nobody can look at, makes the record incomplete: another file can
// have its descriptor when it could be looked at.

func twoFiles(t *testing.T) (a, b string) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	testkit.Must(t, err)
	for _, name := range []string{"a", "b"} {
		fd, err := unix.Open(dir+"/"+name, unix.O_CREAT|unix.O_RDONLY|unix.O_CLOEXEC, 0o600)
		testkit.Must(t, err)
		unix.Close(fd)
	}
	return dir + "/a", dir + "/b"
}

// A worker of a ring opens it, it is written to and closed, and the request is completed when another file is there.
func TestUnseenByRing(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a, b := twoFiles(t)
	u, err := uring.With(8, uring.Deferred)
	if err != nil {
		testkit.Missing(t, "a deferred ring", err)
	}
	u.Do(uring.Entry{Op: uring.Nop, Flags: uring.Async})
	for _, way := range []int{unix.O_RDONLY, unix.O_RDWR} {
		s := attachOwn(t, false)
		next, err := unix.FcntlInt(0, unix.F_DUPFD, 700) // a number that nothing else takes
		testkit.Must(t, err)
		unix.Close(next)
		var low []int
		for fd := -1; fd < next-1; { // until it is the lowest free one
			if fd, err = unix.FcntlInt(0, unix.F_DUPFD, 0); err != nil {
				t.Fatal(err)
			}
			low = append(low, fd)
		}
		name := append([]byte(a), 0)
		u.Submit(uring.Entry{Op: uring.Openat, FD: unix.AT_FDCWD, Addr: uint64(uintptr(unsafe.Pointer(&name[0]))), OpFlags: uint32(way), Flags: uring.Async})
		for end := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
			if _, err := unix.FcntlInt(uintptr(next), unix.F_GETFD, 0); err == nil {
				break
			}
			if time.Now().After(end) {
				t.Fatal("no worker opened the file")
			}
		}
		unix.Close(next)
		other, err := unix.Open(b, way, 0)
		testkit.Must(t, err)
		u.Wait()
		runtime.KeepAlive(name)
		for _, fd := range append(low, other) {
			unix.Close(fd)
		}
		if other != next {
			t.Fatalf("the other file has the descriptor %d, expected %d", other, next)
		}
		if n, want := interference(t, s)[schemas.InterferenceUnseen], uint64(way&unix.O_ACCMODE/unix.O_RDWR); n != want {
			t.Errorf("opened by %#x: %d were told, expected %d", way, n, want)
		}
		s.Close()
	}
}

// A thread puts another file on the descriptor before the open of the first one ends. Each open that is in doubt for that is told.
func TestUnseenByThreads(t *testing.T) {
	a, b := twoFiles(t)
	s := attachOwn(t, false)
	other, err := unix.Open(b, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	testkit.Must(t, err)
	defer unix.Close(other)
	var stop atomic.Bool
	var at atomic.Int64
	ended := make(chan bool)
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		for !stop.Load() {
			if fd := at.Load(); fd > 0 {
				unix.Dup3(other, int(fd), unix.O_CLOEXEC)
			}
		}
	}()
	const opens = 5_000
	for range opens {
		fd, err := unix.Open(a, unix.O_RDWR|unix.O_CLOEXEC, 0)
		testkit.Must(t, err)
		at.Store(int64(fd))
		unix.Close(fd)
		unix.Close(fd) // what the thread put there since
	}
	stop.Store(true)
	<-ended
	unix.Close(int(at.Load()))
	told := interference(t, s)[schemas.InterferenceUnseen]
	var doubtful, seen uint64
	for _, e := range eventsOf(t, s, schemas.OpOpenat) {
		if e.Flags&unix.O_ACCMODE == unix.O_RDWR {
			if seen++; e.Marks&schemas.MarkChanged != 0 {
				doubtful++
			}
		}
	}
	t.Logf("%d opens, %d in doubt, %d told", seen, doubtful, told)
	if seen < opens || told != doubtful {
		t.Errorf("%d of %d opens, %d in doubt, %d told", seen, opens, doubtful, told)
	}
}
