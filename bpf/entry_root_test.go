//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// underFilter makes calls in a thread of its own, under a seccomp filter that answers unlinkat
// with 0, mkdirat with EPERM, and traps nothing else.
func underFilter(t *testing.T, calls func()) {
	t.Helper()
	answer := func(nr, errno uint32) []unix.SockFilter {
		return []unix.SockFilter{{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: nr}, {Code: unix.BPF_RET, K: 0x00050000 | errno}}
	}
	prog := slices.Concat([]unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}},
		answer(unix.SYS_UNLINKAT, 0), answer(unix.SYS_MKDIRAT, uint32(unix.EPERM)), []unix.SockFilter{{Code: unix.BPF_RET, K: 0x7fff0000}})
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			p := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
			err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&p)), 0, 0)
		}
		if err == nil {
			calls()
		}
		failed <- err
	}()
	testkit.Must(t, <-failed)
}

// A call that was answered instead of run is not told as done. One that ran is, and one that was
// answered with an error failed.
func TestAnsweredCalls(t *testing.T) {
	for _, redundant := range []bool{false, true} {
		s := attachOwn(t, redundant)
		name := fmt.Sprintf("/runner-answered/%d/%t", os.Getpid(), redundant)
		underFilter(t, func() {
			for range 2 { // the entry of one is no proof of the next
				unix.Unlinkat(unix.AT_FDCWD, name, 0)
				unix.Mkdirat(unix.AT_FDCWD, name, 0o700)
				unix.Openat(unix.AT_FDCWD, name, 0, 0)
			}
		})
		want := []string{"unlink unproven", "mkdir -1", "openat -2"}
		if got := outcomes(t, s, name); !slices.Equal(got, slices.Concat(want, want)) {
			t.Errorf("with copies %t: %q, expected twice %q", redundant, got, want)
		}
		s.Close()
	}
}

// outcomes are the operations on a name, with their results.
func outcomes(t *testing.T, s *Session, name string) (list []string) {
	t.Helper()
	testkit.Must(t, s.Quiet())
	var rec ringbuf.Record
	var d Decoder
	var e schemas.RawEvent
	s.Ring.SetDeadline(time.Now().Add(time.Minute)) // what all others of the cgroup did comes before
	for {
		err := s.Ring.ReadInto(&rec)
		if errors.Is(err, ringbuf.ErrFlushed) || errors.Is(err, os.ErrDeadlineExceeded) {
			return list
		}
		testkit.Must(t, err)
		if _, err := d.Decode(rec.RawSample, &e); err != nil {
			t.Fatalf("%v: %x", err, rec.RawSample)
		}
		if string(e.UserPath) != name {
			continue
		}
		result := "without a result"
		switch {
		case e.Marks&schemas.MarkUnproven != 0 && e.Has&schemas.HasRet == 0:
			result = schemas.StatusUnproven
		case e.Marks&schemas.MarkUnproven == 0 && e.Has&schemas.HasRet != 0:
			result = fmt.Sprint(e.Ret)
		}
		list = append(list, strings.TrimSpace(e.Op+" "+result))
	}
}
