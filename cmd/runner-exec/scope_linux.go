package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// scope is the cgroup that holds the command and all its descendants.
type scope struct {
	path   string   // for people and runner-capture
	at     string   // for ourselves: valid even if the command mounts over path
	parent *os.File // holds at
	ours   bool     // runner-capture made it; before that it may be another run's of the same name
}

// newScope chooses the cgroup runner-ID below parent, or below our own cgroup.
// runner-capture makes it, and removes it when we are gone: if it were made here, a kill
// before runner-capture's start would leave it behind.
func newScope(parent, runID string) (*scope, error) {
	if parent == "" {
		own, err := cgroup.Own()
		if err != nil {
			return nil, cannotObserve(fmt.Errorf("finding the own cgroup: %w", err))
		}
		// The kernel wants write access to the common ancestor of where we are
		// and where the command is to be. Checked now, the message is clearer.
		err = unix.Faccessat(unix.AT_FDCWD, filepath.Join(own, "cgroup.procs"), unix.W_OK, unix.AT_EACCESS)
		if err != nil {
			return nil, cannotObserve(fmt.Errorf("starting a command in a cgroup below %s: %w", own, err))
		}
		parent = own
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, err
	}
	if st, err := os.Stat(parent); err != nil {
		return nil, cannotObserve(fmt.Errorf("looking at the parent cgroup: %w", err))
	} else if !st.IsDir() || !cgroup.IsV2(parent) {
		return nil, tool.Fail(tool.ExitCannot, fmt.Errorf("%s is not a directory of a cgroup v2 hierarchy", parent),
			"list the mounts: grep cgroup2 /proc/self/mounts")
	}
	path := filepath.Join(parent, "runner-"+runID)
	if _, err := os.Lstat(path); err == nil {
		return nil, tool.Fail(tool.ExitOwn, fmt.Errorf("the cgroup %s is there already", path),
			"give another --run-id; if no run of that name is going on: rmdir "+path)
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

func cannotObserve(err error) error {
	return tool.Fail(tool.ExitCannot, err,
		"as root: sudo runner-exec -- COMMAND",
		"as a user, in a delegated cgroup: systemd-run --user --scope -p Delegate=yes runner-exec -- COMMAND",
		`without systemd: sudo mkdir DIR && sudo chown -R "$USER" DIR && echo $$ | sudo tee DIR/cgroup.procs, with DIR on the cgroup2 mount`,
		`a user also needs: sudo setcap cap_bpf,cap_perfmon,cap_net_admin+ep "$(command -v runner-capture)"`,
		"without a kernel layer, and saying so: runner-exec --no-kernel -- COMMAND")
}

func (s *scope) close() {
	s.parent.Close()
}

func (s *scope) exists() bool {
	_, err := os.Stat(s.at)
	return err == nil
}

// killAll kills every process in the scope and below, also those just being made,
// and does not wait for it.
func (s *scope) killAll() error {
	if !s.ours {
		return nil
	}
	if err := s.killAndWait(0); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// killAndWait is killAll, and waits until they are gone. The scope may vanish meanwhile:
// runner-capture removes it too.
func (s *scope) killAndWait(limit time.Duration) error {
	if err := cgroup.Kill(s.at, limit); err != nil && s.exists() {
		return fmt.Errorf("killing what runs in the cgroup %s: %w", s.path, err)
	}
	return nil
}

// empty returns when no process is left in the scope and below. Without a scope there
// is none: runner-capture removes it once it is empty.
func (s *scope) empty() error {
	if err := cgroup.Wait(context.Background(), s.at, false); err != nil && s.exists() {
		return fmt.Errorf("waiting for the end of the cgroup %s: %w", s.path, err)
	}
	return nil
}

// taken says that runner-capture has made the cgroup: this run may kill what is in it.
func (s *scope) taken() { s.ours = true }

// remove kills what is left and removes the scope with the cgroups that the
// command made in it. If it is gone already, that is not an error.
func (s *scope) remove(limit time.Duration) error {
	if !s.ours {
		// What runner-capture could not remove is empty. What is not empty belongs to
		// another run of the same name that began in the same moment.
		cgroup.Remove(s.at)
		return nil
	}
	if os.Remove(s.at) == nil { // it was empty; this works even without a free descriptor
		return nil
	}
	if err := s.killAndWait(limit); err != nil {
		return err
	}
	if err := cgroup.Remove(s.at); err != nil && s.exists() {
		return err
	}
	return nil
}
