//go:build linux

package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestKillThreaded: what is in a cgroup that somebody made threaded is killed too. cgroup.kill is refused there.
func TestKillThreaded(t *testing.T) {
	own, err := Own()
	if err != nil {
		testkit.Missing(t, "cgroups", err)
	}
	dir := filepath.Join(own, "threaded-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		testkit.Missing(t, "cgroups", err)
	}
	defer Remove(dir)
	if err := os.WriteFile(dir+"/cgroup.type", []byte("threaded"), 0); err != nil {
		testkit.Skip(t, "threaded cgroups", err)
	}
	c := exec.Command("sleep", "300")
	testkit.Must(t, c.Start())
	defer c.Wait()
	defer c.Process.Kill()
	if err := os.WriteFile(dir+"/cgroup.threads", []byte(strconv.Itoa(c.Process.Pid)), 0); err != nil {
		testkit.Skip(t, "processes in threaded cgroups", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- Kill(dir, 5*time.Second) }()
	state, err := c.Process.Wait()
	testkit.Must(t, err)
	testkit.Must(t, <-ended)
	if state.Success() {
		t.Error(state)
	}
}
