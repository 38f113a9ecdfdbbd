//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// deep makes cgroups in each other, and returns the innermost one.
func deep(t *testing.T, dir string, levels int) *os.File {
	t.Helper()
	at, err := Open(dir)
	testkit.Must(t, err)
	for range levels {
		testkit.Must(t, unix.Mkdirat(int(at.Fd()), "deep", 0o755))
		next, err := step(at, "deep")
		testkit.Must(t, err)
		at.Close()
		at = next
	}
	return at
}

// A tree of cgroups that is deeper than any path is long is listed, emptied and removed; one that
// a run left is found by its mark.
func TestDeepTree(t *testing.T) {
	own, err := Own()
	if err != nil {
		testkit.Missing(t, "cgroups in each other", err)
	}
	parent := filepath.Join(own, fmt.Sprintf("runner-test-deep-%d", os.Getpid()))
	if err := os.Mkdir(parent, 0o755); err != nil {
		testkit.Missing(t, "cgroups in each other", err)
	}
	defer os.Remove(parent)
	dir := parent + "/run"
	testkit.Must(t, os.Mkdir(dir, 0o755))
	defer Remove(dir)
	last := deep(t, dir, 1100)
	defer last.Close()
	c := exec.Command("sleep", "100")
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(last.Fd())}
	testkit.Must(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	if pids, err := Processes(dir); err != nil || !slices.Equal(pids, []int{c.Process.Pid}) {
		t.Errorf("processes %v, expected %d: %v", pids, c.Process.Pid, err)
	}
	claim, err := Claim(dir, "run-7")
	testkit.Must(t, err)
	if list := ClearLeftovers(parent, ""); len(list) > 0 {
		t.Errorf("a run that is observed was cleared: %v", list)
	}
	testkit.Must(t, claim.Close())
	list := ClearLeftovers(parent, "")
	if len(list) != 1 || list[0].RunID != "run-7" || list[0].Killed != 1 || list[0].Err != nil {
		t.Errorf("expected the run and its process: %+v", list)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the process was not killed")
	}
	if testkit.Exists(dir) {
		t.Errorf("%s was not removed", dir)
	}
}
