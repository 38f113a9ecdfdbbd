package tool

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestEndUnread: a process that had ignored SIGPIPE ends by it.
func TestEndUnread(t *testing.T) {
	if os.Getenv("RUNNER_TEST_UNREAD") != "" {
		signal.Ignore(syscall.SIGPIPE)
		EndUnread()
		os.Exit(3)
	}
	r, w, err := os.Pipe()
	testkit.Must(t, err)
	testkit.Must(t, r.Close())
	c := exec.Command(os.Args[0], "-test.run", "^TestEndUnread$")
	c.Env, c.Stdout = append(os.Environ(), "RUNNER_TEST_UNREAD=1"), w
	err = c.Run()
	if ws := c.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGPIPE {
		t.Errorf("%v", err)
	}
}
