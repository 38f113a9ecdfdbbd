//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// eventsOf are the events of an operation, with copies of their names.
func eventsOf(t *testing.T, s *Session, op string) (list []schemas.RawEvent) {
	t.Helper()
	testkit.Must(t, s.Quiet())
	var rec ringbuf.Record
	var d Decoder
	s.Ring.SetDeadline(time.Now().Add(time.Minute)) // what all others of the cgroup did comes before
	for {
		err := s.Ring.ReadInto(&rec)
		if errors.Is(err, ringbuf.ErrFlushed) || errors.Is(err, os.ErrDeadlineExceeded) {
			return list
		}
		testkit.Must(t, err)
		var e schemas.RawEvent
		if _, err := d.Decode(rec.RawSample, &e); err != nil {
			t.Fatalf("%v: %x", err, rec.RawSample)
		}
		if e.Op != op || e.PID != uint32(os.Getpid()) {
			continue
		}
		for _, p := range []*[]byte{&e.Path, &e.UserPath, &e.Base, &e.UserPath2, &e.Base2} {
			*p = slices.Clone(*p)
		}
		list = append(list, e)
	}
}

// A name starts from where its directory was before the call moved it.
func TestPlacesThatACallMoves(t *testing.T) {
	for _, redundant := range []bool{false, true} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		testkit.Must(t, err)
		testkit.Must(t, errors.Join(os.MkdirAll(dir+"/d/in", 0o755), os.Mkdir(dir+"/sub", 0o755)))
		in, err := unix.Open(dir+"/d/in", unix.O_PATH, 0)
		testkit.Must(t, err)
		defer unix.Close(in)
		s := attachWith(t, Options{Without: Objects, Copies: map[bool]Copies{false: CopiesOff, true: CopiesOn}[redundant]})
		testkit.Must(t, unix.Renameat(in, "../../d", in, "../../sub/d"))
		list := eventsOf(t, s, schemas.OpRename)
		if len(list) != 1 || string(list[0].Base) != dir+"/d/in" || string(list[0].Base2) != dir+"/d/in" || list[0].Marks != 0 {
			t.Errorf("with copies %t: %+v", redundant, list)
		}
		s.Close()
	}
}

// While a call waits, another thread puts another file on its descriptor: that is never told as the file.
func TestDescriptorThatChanges(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	testkit.Must(t, err)
	s := attachOwn(t, false)
	open := func(name string) int {
		fd, err := unix.Open(dir+"/"+name, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		testkit.Must(t, err)
		return fd
	}
	fd, writer, decoy := open("target"), open("target"), open("decoy")
	started, swapped := make(chan bool), make(chan bool)
	go func() { // holds the lock that fchmod waits for
		page := make([]byte, 64<<20)
		close(started)
		unix.Pwrite(writer, page, 0)
	}()
	go func() {
		<-started
		time.Sleep(5 * time.Millisecond)
		unix.Dup3(decoy, fd, unix.O_CLOEXEC)
		close(swapped)
	}()
	<-started
	time.Sleep(2 * time.Millisecond)
	testkit.Must(t, unix.Fchmod(fd, 0o640))
	<-swapped
	list := eventsOf(t, s, schemas.OpChmod)
	if len(list) != 1 {
		t.Fatalf("%d events", len(list))
	}
	st, err := os.Stat(dir + "/target")
	testkit.Must(t, err)
	want, marked := dir+"/target", list[0].Marks&schemas.MarkChanged != 0
	if st.Mode().Perm() != 0o640 { // the swap came before the call
		want = dir + "/decoy"
	}
	t.Logf("the call waited and its descriptor changed: %t", marked)
	if string(list[0].Path) != want && !marked {
		t.Errorf("told %q of %s", list[0].Path, want)
	}
}

// With a root of its own, every name of an open starts from its directory.
func TestOwnRootOfALookup(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	testkit.Must(t, err)
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	testkit.Must(t, err)
	defer unix.Close(fd)
	s := attachOwn(t, false)
	for _, name := range []string{"/none/own-root", "../none/own-root"} {
		if _, err := unix.Openat2(fd, name, &unix.OpenHow{Resolve: unix.RESOLVE_IN_ROOT}); !errors.Is(err, unix.ENOENT) {
			testkit.Missing(t, "openat2 with RESOLVE_IN_ROOT", err)
		}
	}
	for _, e := range eventsOf(t, s, schemas.OpOpenat2) {
		if string(e.Base) != dir || e.Resolve != unix.RESOLVE_IN_ROOT || e.Marks&schemas.MarkChroot != 0 && e.UserPath[0] == '/' {
			t.Errorf("%q from %q, marks %#x", e.UserPath, e.Base, e.Marks)
		}
	}
}

// Threads that open and close files get each other's descriptors, and a fork beside them copies those: that is no reason for doubt.
func TestThreadsThatOpenAndClose(t *testing.T) {
	const threads, rounds = 8, 2000
	for _, redundant := range []bool{false, true} {
		s := attachOwn(t, redundant)
		dir := t.TempDir()
		var all, forks sync.WaitGroup
		var done atomic.Bool
		forks.Go(func() {
			for !done.Load() {
				exec.Command("true").Run()
			}
		})
		for i := range threads {
			name := filepath.Join(dir, strconv.Itoa(i))
			testkit.Must(t, os.WriteFile(name, nil, 0o600))
			all.Go(func() {
				runtime.LockOSThread()
				for range rounds {
					if fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
						unix.Close(fd)
					}
				}
			})
		}
		all.Wait()
		done.Store(true)
		forks.Wait()
		list := eventsOf(t, s, schemas.OpOpenat)
		doubtful, seen := 0, 0
		for _, e := range list {
			if !strings.HasPrefix(string(e.Path)+string(e.UserPath), dir+"/") || e.Flags&unix.O_ACCMODE != 0 {
				continue
			}
			if seen++; e.Marks != 0 {
				doubtful++
			}
		}
		t.Logf("with copies %t: %d opens, %d in doubt", redundant, seen, doubtful)
		if seen != threads*rounds || doubtful != 0 {
			t.Errorf("with copies %t: %d of %d opens, %d in doubt", redundant, seen, threads*rounds, doubtful)
		}
		s.Close()
	}
}
