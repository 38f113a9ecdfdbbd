package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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
func runCanary(ctx context.Context, dir, path string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", canaryVerb, path)
	cmd.Dir = "/"
	cmd.Env = []string{"GOMAXPROCS=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd()), Setpgid: true}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("starting the canary in %s: %w", dir, err)
	}
	return nil
}
