package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
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

// canaryEnd is how the canary ended. Earlier ones, which a signal ended, were in cgroups with these ids.
type canaryEnd struct {
	err  error
	dead []uint64
}

// maxCanaries are started, one after the other, if signals end them. On a busy machine, several of them meet one.
const maxCanaries = 20

// runCanary starts the canary inside the cgroup, at clone time, and waits for its
// end: from then on all its records are in the ring.
//
// It gets its own child cgroup where one can be made. In the cgroup itself a process
// cannot always be started: Linux 6.18, for one, kills it at once if cgroup.kill was
// used there before, and a cgroup whose controllers are enabled for its children
// accepts no process.
//
// Until it has a process group of its own, what a terminal or timeout sends to the group of
// this process ends it as well. Then there is another one.
func runCanary(ctx context.Context, dir, path string) (end canaryEnd) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		home, err := tryCanary(ctx, dir, path)
		if end.err = err; home == 0 || !signalled(err) || len(end.dead) == maxCanaries-1 {
			return end
		}
		end.dead = append(end.dead, home)
	}
}

// tryCanary runs one canary. home is the id of its own cgroup, or 0.
func tryCanary(ctx context.Context, dir, path string) (home uint64, err error) {
	var errs []error
	if below, err := cgroup.MakeBelow(dir, "canary-"); err == nil {
		defer cgroup.Remove(below)
		cmd, id, err := launchCanary(ctx, below, path)
		if err == nil {
			return id, waitCanary(cmd, below)
		}
		errs = append(errs, err)
	}
	cmd, _, err := launchCanary(ctx, dir, path)
	if err != nil {
		return 0, errors.Join(append(errs, err)...)
	}
	return 0, waitCanary(cmd, dir)
}

// signalled reports whether a signal that groups of processes get ended a canary.
func signalled(err error) bool {
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return false
	}
	status, _ := ended.Sys().(syscall.WaitStatus)
	return status.Signaled() && slices.Contains([]syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}, status.Signal())
}

// launchCanary starts one. id is that of the cgroup.
func launchCanary(ctx context.Context, dir, path string) (cmd *exec.Cmd, id uint64, err error) {
	f, err := cgroup.Open(dir)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, 0, os.NewSyscallError("fstat", err)
	}
	if err := enterOwnProc(); err != nil {
		return nil, 0, fmt.Errorf("starting the canary: %w", err)
	}
	cmd = exec.CommandContext(ctx, "self/exe", canaryVerb, path)
	cmd.Env = []string{"GOMAXPROCS=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd()), Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, 0, fmt.Errorf("starting the canary in %s: %w", dir, err)
	}
	return cmd, st.Ino, nil // the inode number of a cgroup's folder is its id
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

// deadCanary reports whether an event is of a canary that a signal ended: of a process that was not in the run before,
// in that canary's cgroup, and nothing that the canary that was seen did not do.
func (v *events) deadCanary(e *schemas.RawEvent) bool {
	return slices.Contains(v.dead, e.CgroupID) && !v.tasks.has(e.TID, e.PID) &&
		(e.Op == schemas.OpFork || e.Op == schemas.OpExit || v.usual[v.canaryAct(e)])
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
	ownProcess = pattern.New("^(.*)/proc/[0-9]+/")
	ownLimits  = pattern.New("^.*/cpu[.][a-z_]+$")
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
