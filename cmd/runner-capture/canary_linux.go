package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
)

// canaryVerb makes the binary open one path that does not exist and end. Seeing
// that open proves attach, scope, ring and decoding at once; order proves that
// everything before it was read.
const canaryVerb = "--canary"

// canaryMain is the canary process.
func canaryMain(path string) {
	unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

func canaryPath(runID, which string) string {
	return "/runner-canary/" + runID + "/" + which
}

// runCanary starts the canary inside the cgroup, at clone time, and waits for its
// end: from then on all its records are in the ring.
//
// It gets its own child cgroup where one can be made. In the cgroup itself a process
// cannot always be started: Linux 6.18, for one, kills it at once if cgroup.kill was
// used there before, and a cgroup whose controllers are enabled for its children
// accepts no process.
func runCanary(ctx context.Context, dir, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var errs []error
	if home, err := os.MkdirTemp(dir, "canary-"); err == nil {
		defer cgroup.Remove(home)
		cmd, err := launchCanary(ctx, home, path)
		if err == nil {
			return waitCanary(cmd, home)
		}
		errs = append(errs, err)
	}
	cmd, err := launchCanary(ctx, dir, path)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	return waitCanary(cmd, dir)
}

func launchCanary(ctx context.Context, dir, path string) (*exec.Cmd, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", canaryVerb, path)
	cmd.Dir = "/"
	cmd.Env = []string{"GOMAXPROCS=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd()), Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the canary in %s: %w", dir, err)
	}
	return cmd, nil
}

func waitCanary(cmd *exec.Cmd, dir string) error {
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("the canary in %s: %w", dir, err)
	}
	return nil
}
