package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cause"
	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// scope is the cgroup that holds the command and all its descendants.
type scope struct {
	path   string   // for messages and runner-capture
	at     string   // the path that we use: valid even if the command mounts over path
	parent *os.File // keeps at valid
	ours   bool     // runner-capture made it; until then it may belong to another run with the same name
}

// newScope chooses the cgroup runner-ID below parent, or below our own cgroup.
// runner-capture makes it, and removes it even when runner-exec is killed. If
// runner-exec made it, a kill before runner-capture starts would leave the cgroup.
func newScope(parent, runID string, env *tool.Env) (*scope, error) {
	if parent == "" {
		own, err := cgroup.Own()
		if err != nil {
			return nil, cannotObserve(fmt.Errorf("finding the cgroup of runner-exec: %w", err))
		}
		// The kernel requires write access to the common ancestor of our cgroup and the
		// command's. A check here gives a clearer message than a failed start.
		err = unix.Faccessat(unix.AT_FDCWD, filepath.Join(own, "cgroup.procs"), unix.W_OK, unix.AT_EACCESS)
		if err != nil && os.Geteuid() != 0 {
			return nil, tool.Fail(tool.ExitCannot, fmt.Errorf("this shell is in the cgroup %s, where this user may start nothing: %w", own, err),
				cause.OwnCgroup, "or as root: sudo runner-exec -- COMMAND")
		}
		if err != nil {
			return nil, cannotObserve(fmt.Errorf("starting a command in a cgroup below %s: %w", own, err))
		}
		parent = own
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, err
	}
	if err := checkParent(parent); err != nil {
		return nil, err
	}
	if err := checkShell(parent); err != nil {
		return nil, err
	}
	clearLeftovers(parent, env)
	path := filepath.Join(parent, "runner-"+runID)
	if _, err := os.Lstat(path); err == nil {
		return nil, tool.Fail(tool.ExitOwn, fmt.Errorf("the cgroup %s already exists", path),
			"give another --run-id; if no run with that name is in progress: rmdir "+path)
	}
	if err := unix.Faccessat(unix.AT_FDCWD, parent, unix.W_OK, unix.AT_EACCESS); err != nil {
		return nil, cannotObserve(fmt.Errorf("making a cgroup in %s: %w", parent, err))
	}
	at, held, err := cgroup.Hold(path)
	if err != nil {
		return nil, cannotObserve(err)
	}
	return &scope{path: path, at: at, parent: held}, nil
}

// checkParent refuses what is no cgroup that a run can be made in. The hint says where there are some.
func checkParent(parent string) error {
	st, err := os.Stat(parent)
	if err == nil && st.IsDir() && cgroup.IsV2(parent) {
		return nil
	}
	hint := "list the mounts: grep cgroup2 /proc/self/mounts"
	for above := filepath.Dir(parent); above != filepath.Dir(above); above = filepath.Dir(above) {
		if cgroup.IsV2(above) {
			hint = "list the cgroups that there are: ls -d " + tool.ShellWord(above) + "/*/"
			break
		}
	}
	what := fmt.Errorf("--cgroup-parent %s is not a directory of a cgroup v2 hierarchy", parent)
	if err != nil {
		what = fmt.Errorf("--cgroup-parent %s: %w", parent, errors.Unwrap(err))
	}
	return tool.Fail(tool.ExitCannot, what, hint)
}

// checkShell refuses a parent into which this user can start nothing from here: the kernel requires write
// access to the cgroup above both. Where that one cannot be told, starting the command says what is wrong.
func checkShell(parent string) error {
	own, err := cgroup.Own()
	if err != nil || os.Geteuid() == 0 {
		return nil
	}
	both := parent
	for both != own && both != filepath.Dir(both) && !strings.HasPrefix(own, both+"/") {
		both = filepath.Dir(both)
	}
	if !cgroup.IsV2(both) {
		return nil // the paths are of different mounts
	}
	err = unix.Faccessat(unix.AT_FDCWD, filepath.Join(both, "cgroup.procs"), unix.W_OK, unix.AT_EACCESS)
	if err == nil {
		return nil
	}
	return tool.Fail(tool.ExitCannot, fmt.Errorf("this shell is in the cgroup %s, from where this user may start nothing in %s: %s is not theirs: %w", own, parent, both, err),
		cause.OwnCgroup, "or move this shell there first: echo $$ | sudo tee "+tool.ShellWord(filepath.Join(parent, "cgroup.procs")))
}

// clearLeftovers ends what is left of runs that were killed together with all that watched
// over them.
func clearLeftovers(parent string, env *tool.Env) {
	for _, l := range cgroup.ClearLeftovers(parent, "") {
		if l.Err != nil {
			env.Warnf("the run %s is not observed any more, and its cgroup %s cannot be cleared: %v", schemas.Text(l.RunID), l.Dir, l.Err)
		} else {
			env.Warnf("the run %s was left without a record: killed %d of its processes, removed its cgroup %s", schemas.Text(l.RunID), l.Killed, l.Dir)
		}
	}
}

func cannotObserve(err error) error {
	why, hints := cause.Here(false).Of(err, cause.Other)
	return tool.Fail(tool.ExitCannot, why, hints...)
}

func (s *scope) close() {
	s.parent.Close()
}

func (s *scope) exists() bool {
	return cgroup.Exists(s.at) == nil
}

// killAll kills every process in the scope and below, including those that are being
// forked. It does not wait until they have ended.
func (s *scope) killAll() error {
	if !s.ours {
		return nil
	}
	if err := s.killAndWait(0); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// killAndWait kills them and waits until they have ended. runner-capture may remove the
// scope at the same time; that is not an error.
func (s *scope) killAndWait(limit time.Duration) error {
	if err := cgroup.Kill(s.at, limit); err != nil && !cgroup.Gone(s.at, err) {
		return fmt.Errorf("killing the processes in the cgroup %s: %w", s.path, err)
	}
	return nil
}

// empty returns when no process is left in the scope and below. A scope that no longer
// exists is empty: runner-capture removes it then.
func (s *scope) empty() error {
	if err := cgroup.Wait(context.Background(), s.at, false); err != nil && !cgroup.Gone(s.at, err) {
		return fmt.Errorf("waiting until the cgroup %s is empty: %w", s.path, err)
	}
	return nil
}

// taken notes that runner-capture has made the cgroup, so this run may kill the
// processes in it.
func (s *scope) taken() { s.ours = true }

// remove kills the remaining processes and removes the scope with the cgroups that
// the command made in it. A scope that no longer exists is not an error.
func (s *scope) remove(limit time.Duration) error {
	if !s.ours {
		// If runner-capture made the cgroup and could not remove it, it is empty. A cgroup
		// with processes belongs to another run with the same name that started at the
		// same time, and cannot be removed.
		cgroup.Remove(s.at)
		return nil
	}
	if os.Remove(s.at) == nil && !s.exists() { // it was empty; this needs no free descriptor
		return nil
	}
	if err := s.killAndWait(limit); err != nil {
		return err
	}
	if err := cgroup.Remove(s.at); err != nil && !cgroup.Gone(s.at, err) {
		return err
	}
	return nil
}
