//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// A call that a signal interrupted in a run, and whose outcome is known only when that has ended, is not told to the run that has
// its place by then.
func TestSharedLate(t *testing.T) {
	shareHere(t)
	keeps := shareWith(t, newScope(t, ownCgroup(t)), Options{})
	a, b := newScope(t, ownCgroup(t)), newScope(t, ownCgroup(t))
	fifo := filepath.Join(t.TempDir(), "fifo")
	testkit.Must(t, syscall.Mkfifo(fifo, 0o600))

	first := shareWith(t, a, Options{})
	place := first.member.run
	cmd := inScope(t, a, "sh", "-c", `trap : USR1; : < "$1"`, "sh", fifo)
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	until(t, cmd.Process.Pid, "S") // in the open
	testkit.Must(t, cmd.Process.Signal(syscall.SIGSTOP))
	until(t, cmd.Process.Pid, "T")
	first.Close()

	freeLast(t, keeps, place)
	second := shareWith(t, b, Options{})
	if second.member.run != place {
		t.Fatalf("the second run has place %d, expected %d", second.member.run, place)
	}
	testkit.Must(t, cmd.Process.Signal(syscall.SIGUSR1))
	testkit.Must(t, cmd.Process.Signal(syscall.SIGCONT))
	until(t, cmd.Process.Pid, "SZ")
	if got := all(t, second); got.read != 0 {
		t.Errorf("a run in which nothing ran: %v", got.ops)
	}
	second.Close()

	freeLast(t, keeps, place)
	third := shareWith(t, b, Options{})
	runIn(t, b, openMany, "/nothing/third", "10")
	if got := all(t, third); third.member.run != place || got.opens["/nothing/third"] != 10 {
		t.Errorf("the third run, in place %d: %v", third.member.run, got.opens)
	}
}

// freeLast makes all free places but one look as if they had been left a moment ago: the next run has that one.
func freeLast(t *testing.T, s *Session, place uint32) {
	t.Helper()
	places, err := s.set.places()
	testkit.Must(t, err)
	for run, r := range places {
		if r.CgroupId == 0 && run != place {
			testkit.Must(t, s.set.maps[objects.KernelSharedMapRuns].Put(run-1, objects.KernelSharedRun{Alive: 1 << 31, Ended: 1, Left: leftPrograms}))
		}
	}
}

// until waits for a process to be in one of these states for a while: it can sleep for a moment on its way.
func until(t *testing.T, pid int, states string) {
	t.Helper()
	for end, n := time.Now().Add(10*time.Second), 0; n < 20; time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		testkit.Must(t, err)
		_, rest, _ := strings.Cut(string(b), ") ")
		if n++; !strings.Contains(states, rest[:1]) {
			n = 0
		}
		if time.Now().After(end) {
			t.Fatalf("process %d is in state %s, expected %s", pid, rest[:1], states)
		}
	}
}
