//go:build linux && (amd64 || arm64)

package bpf

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// interference is what was told until the end.
func interference(t *testing.T, s *Session) map[string]uint64 {
	t.Helper()
	if err := s.Quiet(); err != nil {
		t.Fatal(err)
	}
	return s.Interference(position(s.guard.prod))
}

// A second thread changes what a call asks for while the kernel carries it out. What counts
// is what was opened.
func TestGuardSeesWhatWasOpened(t *testing.T) {
	s := attachOwn(t, false)
	const read = unix.O_RDONLY | unix.O_CLOEXEC
	how := &unix.OpenHow{Flags: read}
	var stop atomic.Bool
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for !stop.Load() {
			atomic.StoreUint64(&how.Flags, unix.O_RDWR|unix.O_CLOEXEC)
			atomic.StoreUint64(&how.Flags, read)
		}
	}()
	path := []byte("/proc/self/mem\x00")
	at := unix.AT_FDCWD
	var writable uint64
	for end := time.Now().Add(time.Second); writable < 200 && time.Now().Before(end); {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT2, uintptr(at), uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(how)), unix.SizeofOpenHow, 0, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		if flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil || flags&unix.O_ACCMODE == unix.O_RDWR {
			writable++
		}
		unix.Close(int(fd))
	}
	stop.Store(true)
	<-ended
	runtime.KeepAlive(how)
	if n := interference(t, s)[schemas.InterferenceTrace]; n != writable {
		t.Errorf("%d opens of the memory for writing, %d were told", writable, n)
	}
}

// Each copy of the probe tells the same signals. They count once.
func TestGuardCountsSignalsOnce(t *testing.T) {
	signal.Ignore(unix.SIGSYS)
	defer signal.Reset(unix.SIGSYS)
	for _, redundant := range []bool{false, true} {
		s := attachOwn(t, redundant)
		for range 7 {
			testkit.Must(t, unix.Kill(os.Getpid(), unix.SIGSYS))
		}
		if n := interference(t, s)[schemas.InterferenceSignal]; n != 7 {
			t.Errorf("copies %t: 7 signals, %d were told", redundant, n)
		}
	}
}

// The signals of job control stop a whole process group, as ^Z does, if they come from it. From another group they are told.
func TestGuardJobControl(t *testing.T) {
	job := []os.Signal{unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU}
	signal.Ignore(job...)
	defer signal.Reset(job...)
	for _, redundant := range []bool{false, true} {
		s := attachOwn(t, redundant)
		pid := strconv.Itoa(os.Getpid())
		for _, sig := range job {
			testkit.Must(t, unix.Kill(os.Getpid(), sig.(unix.Signal)))
			testkit.Must(t, exec.Command("sh", "-c", "kill -$1 $2", "sh", strconv.Itoa(int(sig.(unix.Signal))), pid).Run())
		}
		for _, sig := range job {
			c := exec.Command("sh", "-c", "kill -$1 $2", "sh", strconv.Itoa(int(sig.(unix.Signal))), pid)
			c.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
			testkit.Must(t, c.Run())
		}
		if n := interference(t, s)[schemas.InterferenceSignal]; n != uint64(len(job)) {
			t.Errorf("copies %t: %d signals of its own group and as many of another, %d were told", redundant, 2*len(job), n)
		}
	}
}

// Without ftrace the kernel runs no LSM programs: who can write there can end the file rules.
func TestGuardFtrace(t *testing.T) {
	s := attachOwn(t, false)
	f, err := os.OpenFile("/proc/sys/kernel/ftrace_enabled", os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		testkit.Skip(t, "ftrace", "this kernel has none")
	}
	testkit.Must(t, err)
	f.Close()
	if got := interference(t, s); got[schemas.InterferenceKernel] != 1 {
		t.Errorf("told: %v", got)
	}
}

// Alarms that may be about nobody of the runner must not make others get lost unseen.
func TestAlarmsFull(t *testing.T) {
	size := 1 << 16
	for records, told := range map[int]bool{2: false, size / (ringHead + alarmSize): true} {
		ring := make([]byte, os.Getpagesize()+size)
		data := ring[os.Getpagesize():]
		for at := range records {
			r := data[at*(ringHead+alarmSize):]
			binary.NativeEndian.PutUint32(r, alarmSize)
			binary.NativeEndian.PutUint32(r[ringHead:], alarmReach)
			binary.NativeEndian.PutUint32(r[ringHead+8:], 1<<30) // no process has this number
		}
		binary.NativeEndian.PutUint64(ring, uint64(records*(ringHead+alarmSize)))
		s := &Session{guard: guard{alarms: ring, prod: make([]byte, 8)}}
		if got := s.Interference(0); (got[schemas.InterferenceTrace] > 0) != told {
			t.Errorf("%d alarms: told %v", records, got)
		}
	}
}
