package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/wrap"
)

// startWrapped starts a wrapper. It and its own processes are outside of the scope: the last wrapper starts the command in it, and
// reports how that ended.
func (s *supervisor) startWrapped(o child.Options) (*child.Process, error) {
	state := wrap.State{User: o.User, Grace: s.opt.Grace, RunID: s.opt.RunID, Logs: s.logs.directory()}
	o.User = nil
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer w.Close()
	s.report = r
	if state.Control, err = wrap.Hand(int(w.Fd())); err != nil {
		return nil, fmt.Errorf("copying a descriptor: %w", err)
	}
	defer unix.Close(state.Control)
	if o.Cgroup != "" {
		dir, err := os.Open(o.Cgroup)
		if err != nil {
			return nil, fmt.Errorf("opening the cgroup: %w", err)
		}
		defer dir.Close()
		if state.Cgroup, err = wrap.Hand(int(dir.Fd())); err != nil {
			return nil, fmt.Errorf("copying a descriptor: %w", err)
		}
		defer unix.Close(state.Cgroup)
		o.Cgroup = ""
	}
	if s.records != nil {
		dir, err := os.Open(s.records.dir)
		if err != nil {
			return nil, fmt.Errorf("opening the directory for records: %w", err)
		}
		defer dir.Close()
		if state.Record, err = wrap.Hand(int(dir.Fd())); err != nil {
			return nil, fmt.Errorf("copying a descriptor: %w", err)
		}
		defer unix.Close(state.Record)
	}
	if o.Env, err = state.Environ(o.Env); err != nil {
		return nil, err
	}
	return child.Start(o)
}

// errWrapper: the wrapper has printed why.
var errWrapper = errors.New("a wrapper failed")

// wrappedEnd is how the command ended, of which the wrapper's own end says less.
func (s *supervisor) wrappedEnd(wrapper child.Ending) (child.Ending, error) {
	defer s.report.Close()
	s.report.SetReadDeadline(time.Now().Add(time.Second)) // it was written before the wrapper ended; others may hold the pipe open
	x, ok := wrap.ReadReport(s.report)
	switch {
	case !ok:
		return x.End, tool.Status(wrapper.Status())
	case wrapper.Status() != x.End.Status():
		return x.End, tool.Failf(tool.ExitOwn, "%w after the command %s; nothing was written", errWrapper, x.End)
	}
	s.chain, s.behind = x.Chain, x.Command
	return x.End, s.records.check(x.Chain)
}

// directory is where the logs are, "" if there are none.
func (l *logs) directory() string {
	if l == nil {
		return ""
	}
	return l.dir.path
}
