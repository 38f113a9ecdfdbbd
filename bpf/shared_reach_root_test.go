//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// reachMain gets hold of a process, in each way in which a program can.
func reachMain(words string) {
	runtime.LockOSThread()
	var how string
	var pid, fd int
	var at uint64
	fmt.Sscan(words, &how, &pid, &fd, &at)
	var err error
	switch how {
	case "descriptor":
		var pidfd int
		if pidfd, err = unix.PidfdOpen(pid, 0); err == nil {
			_, err = unix.PidfdGetfd(pidfd, fd, 0)
		}
	case "attach":
		if err = unix.PtraceSeize(pid); err == nil {
			err = unix.PtraceInterrupt(pid)
		}
		if err == nil {
			_, err = unix.Wait4(pid, nil, unix.WALL, nil)
			unix.PtraceDetach(pid)
		}
	case "memory":
		_, err = os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_WRONLY, 0)
	case "write":
		b := [1]byte{0}
		_, err = unix.ProcessVMWritev(pid, []unix.Iovec{{Base: &b[0], Len: 1}}, []unix.RemoteIovec{{Base: uintptr(at), Len: 1}}, 0)
	}
	fmt.Print(err)
}

// Each capture holds what all runs share. So each run is told of a program that gets hold of the capture of any of them; and not of
// one that gets hold of another process.
func TestSharedReached(t *testing.T) {
	dir := shareHere(t)
	a, b, c := newScope(t, ownCgroup(t)), newScope(t, ownCgroup(t)), newScope(t, ownCgroup(t))
	t.Cleanup(func() { Unload() }) // what the one that is killed at the end leaves
	cmd := startSharing(t, dir, b)
	spare := new(byte)
	thread := make(chan int)
	go func() { // one that is not the first of its process
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			go func() { runtime.LockOSThread(); thread <- unix.Gettid(); select {} }()
		} else {
			thread <- unix.Gettid()
		}
		select {}
	}()
	own, some := os.Getpid(), <-thread
	for _, x := range []struct {
		how  string
		pid  int
		told bool
	}{
		{"descriptor", cmd.Process.Pid, true}, {"attach", cmd.Process.Pid, true}, {"memory", cmd.Process.Pid, true},
		{"write", own, true}, {"write", some, true}, {"descriptor", os.Getppid(), false}, {"memory", os.Getppid(), false},
	} {
		s, other := shareWith(t, a, Options{}), shareWith(t, c, Options{})
		if x.how == "write" { // of another run: this one's own is looked for in /proc
			forget := s.guard.procs
			s.guard.procs = nil
			defer func() { s.guard.procs = forget }()
		}
		reach := inScope(t, a, "/proc/self/exe")
		reach.Env = append(os.Environ(), fmt.Sprintf("%s=reach %s %d 0 %d", actEnv, x.how, x.pid, uintptr(unsafe.Pointer(spare))))
		if out, err := reach.CombinedOutput(); err != nil || string(out) != "<nil>" {
			t.Errorf("%s: %s, %v", x.how, out, err)
		}
		got, beside := interference(t, s), interference(t, other)
		if got[schemas.InterferenceTrace] > 0 != x.told || beside[schemas.InterferenceBPF] > 0 != x.told {
			t.Errorf("%s of %d: the run was told %v, the one beside it %v", x.how, x.pid, got, beside)
		}
		s.Close()
		other.Close()
	}
	runtime.KeepAlive(spare)
}
