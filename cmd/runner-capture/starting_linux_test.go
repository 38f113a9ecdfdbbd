package main

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/confine"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// Who may execute a file that may not be read is asked about twice. Nobody else who has the
// thread's number later gets the second answer.
func TestSecondQuestion(t *testing.T) {
	f, err := os.Open(os.Args[0])
	testkit.Must(t, err)
	defer f.Close()
	mount, err := mountID(int(f.Fd()), "")
	testkit.Must(t, err)
	region := &confine.Region{Deny: map[string]bool{schemas.HookRead: true}, Rule: map[string]uint32{schemas.HookRead: 1}}
	l := &listener{mounts: map[uint64]*confine.Region{mount: region}, regions: []*confine.Region{region},
		starting: map[int32]starter{}, counts: map[uint32]uint64{}}
	denied := func(pid int, mask uint64) bool {
		return l.decide(&unix.FanotifyEventMetadata{Fd: int32(f.Fd()), Pid: int32(pid), Mask: mask})
	}
	child := func() *exec.Cmd {
		cmd := exec.Command("sleep", "60")
		testkit.Must(t, cmd.Start())
		return cmd
	}
	for _, killed := range []bool{false, true} {
		cmd := child()
		pid := cmd.Process.Pid
		if denied(pid, unix.FAN_OPEN_EXEC_PERM) {
			t.Error("executing is denied")
		}
		if killed {
			cmd.Process.Kill()
			cmd.Wait()
		}
		if got := denied(pid, unix.FAN_OPEN_PERM); got != killed {
			t.Errorf("killed %v: the second question is denied: %v", killed, got)
		}
		if !denied(pid, unix.FAN_OPEN_PERM) {
			t.Error("reading is not denied")
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
	for range 3 * manyStarters { // killed before their second question
		cmd := child()
		denied(cmd.Process.Pid, unix.FAN_OPEN_EXEC_PERM)
		cmd.Process.Kill()
		cmd.Wait()
	}
	if len(l.starting) > manyStarters {
		t.Errorf("%d are kept", len(l.starting))
	}
}
