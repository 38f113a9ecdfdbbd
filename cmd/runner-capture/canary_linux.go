package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/schemas"
)

// The canary is a process of the cgroup that executes one path that does not exist, and ends. Seeing that call proves attach,
// scope, ring and decoding at once; order proves that everything before it was read. To start a program would take
// longer than all of this, so it has none.

// canaryPath is what a canary executes. It ends with a slash: nothing that somebody makes there can ever be run.
func canaryPath(runID, which string) string {
	return "/runner-canary/" + runID + "/" + which + "/"
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
func runCanary(dir, path string) (end canaryEnd) {
	for {
		home, err := tryCanary(dir, path)
		if end.err = err; home == 0 || !signalled(err) || len(end.dead) == maxCanaries-1 {
			return end
		}
		end.dead = append(end.dead, home)
	}
}

// tryCanary runs one canary. home is the id of its own cgroup, or 0.
func tryCanary(dir, path string) (home uint64, err error) {
	below, err := cgroup.MakeBelow(dir, "canary-")
	if err == nil {
		defer cgroup.Remove(below)
		home, err = launchCanary(below, path)
		if err == nil || errors.As(err, new(*canaryKilled)) {
			return home, err
		}
	}
	_, second := launchCanary(dir, path)
	if second != nil && !errors.As(second, new(*canaryKilled)) {
		second = errors.Join(err, second)
	}
	return 0, second
}

// canaryKilled is a canary that a signal ended.
type canaryKilled struct {
	dir    string
	status unix.WaitStatus
}

func (e *canaryKilled) Error() string {
	return fmt.Sprintf("the canary in %s: signal: %v", e.dir, e.status.Signal())
}

// signalled reports whether a signal that groups of processes get ended a canary.
func signalled(err error) bool {
	var killed *canaryKilled
	return errors.As(err, &killed) &&
		slices.Contains([]unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM}, killed.status.Signal())
}

// launchCanary starts one and waits for its end. id is that of the cgroup.
func launchCanary(dir, path string) (id uint64, err error) {
	f, err := cgroup.Open(dir)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0, os.NewSyscallError("fstat", err)
	}
	id = st.Ino // the inode number of a cgroup's folder is its id
	pid, err := syscall.ForkExec(path, []string{path}, &syscall.ProcAttr{Env: []string{},
		Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd()), Setpgid: true}})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) { // as it must be: it made the call, and has ended
		return id, nil
	}
	if err != nil {
		return id, fmt.Errorf("starting the canary in %s: %w", dir, err)
	}
	killed := &canaryKilled{dir: dir} // before it came to the call
	for {
		if _, err = unix.Wait4(pid, &killed.status, 0, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil || !killed.status.Signaled() {
		return id, fmt.Errorf("the canary in %s ended with status %#x: %v", dir, uint32(killed.status), err)
	}
	return id, killed
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

// canaryAct is what one event of a canary does, in words that are the same for each canary.
func (v *events) canaryAct(e *schemas.RawEvent) string {
	name := string(e.Path)
	if name == "" {
		name = string(e.UserPath)
	}
	if name == v.marker {
		name = "its path"
	}
	return fmt.Sprintf("%s %x %q %q", e.Op, e.Flags, name, e.Interp)
}
