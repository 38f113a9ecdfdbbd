package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/schemas"
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
	if home, err := cgroup.MakeBelow(dir, "canary-"); err == nil {
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
	f, err := cgroup.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := enterOwnProc(); err != nil {
		return nil, fmt.Errorf("starting the canary: %w", err)
	}
	cmd := exec.CommandContext(ctx, "self/exe", canaryVerb, path)
	cmd.Env = []string{"GOMAXPROCS=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd()), Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the canary in %s: %w", dir, err)
	}
	return cmd, nil
}

// ownProc is /proc, opened before the command starts. The canary finds its program by its
// own name there: a process with capabilities of its file may not look at its parent's.
var ownProc = sync.OnceValues(func() (*os.File, error) {
	return os.OpenFile("/proc", unix.O_PATH|unix.O_DIRECTORY, 0)
})

// enterOwnProc makes ownProc the working directory of the calling thread, which ends with its
// goroutine. So the program of this process is found even if the command has mounted over /proc.
func enterOwnProc() error {
	dir, err := ownProc()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	return os.NewSyscallError("fchdir", unix.Fchdir(int(dir.Fd())))
}

func waitCanary(cmd *exec.Cmd, dir string) error {
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("the canary in %s: %w", dir, err)
	}
	return nil
}

// usualCanary reports whether the canary did nothing that the first one did not do. Something
// else may have been run in its place: then its events stay in the record.
func (v *events) usualCanary() bool {
	acts := map[string]bool{}
	for i := range v.held {
		if e := &v.held[i].e; e.PID == v.canaryPID && e.Op != schemas.OpFork && e.Op != schemas.OpExit {
			acts[v.canaryAct(e)] = true
		}
	}
	if v.usual == nil {
		v.usual = acts
	}
	for act := range acts {
		if !v.usual[act] {
			return false
		}
	}
	return true
}

// The Go runtime reads about its own process, and limits of the processor in its cgroup, whose
// files the command may have changed. In a chroot, or in a root with mounts of its own, the
// kernel names these files from the root above.
var (
	ownProcess = regexp.MustCompile("^(.*)/proc/[0-9]+/")
	ownLimits  = regexp.MustCompile("^.*/cpu[.][a-z_]+$")
)

// canaryAct is what one event of a canary does, in words that are the same for each canary.
func (v *events) canaryAct(e *schemas.RawEvent) string {
	name := string(e.Path)
	if name == "" {
		name = string(e.UserPath)
	}
	if name == v.marker {
		name = canaryVerb
	}
	name = ownLimits.ReplaceAllString(ownProcess.ReplaceAllString(name, "$1/proc/self/"), "cpu")
	return fmt.Sprintf("%s %x %q %q", e.Op, e.Flags, name, e.Interp)
}
