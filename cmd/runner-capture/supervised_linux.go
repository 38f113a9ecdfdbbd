package main

import (
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// takeCgroup takes over the cgroup of a supervised run: from here on a failure kills what is in it, and so
// does the closer. release is for the end, with what failed.
func takeCgroup(opt *options) (release func(failed error) error, last *closer, err error) {
	// The kernel sends it to a stopped process whose parent was killed; the clean-up must go on.
	signal.Ignore(syscall.SIGHUP)
	if opt.ready >= 0 {
		unix.CloseOnExec(opt.ready) // its end is a message: nobody else may hold it
	}
	if err := cgroup.Killable(opt.cgroup); err != nil {
		return nil, nil, tool.Usagef("--supervised needs a cgroup that belongs to this run: %v", err)
	}
	at, held, err := cgroup.Hold(opt.cgroup)
	if err != nil {
		return nil, nil, tool.Fail(tool.ExitCannot, err)
	}
	claim, err := cgroup.Claim(at, opt.runID)
	if err != nil {
		held.Close()
		return nil, nil, tool.Fail(tool.ExitCannot, err)
	}
	if opt.remove {
		last = startCloser(opt.cgroup)
	}
	opt.cgroup = at
	taken := *opt
	return func(failed error) error {
		err := cleanUp(taken, failed != nil)
		last.dismiss(err == nil)
		claim.Close()
		held.Close()
		return errors.Join(failed, err)
	}, last, nil
}

// cleanUp leaves no process and no cgroup behind.
func cleanUp(opt options, failed bool) error {
	if failed {
		if err := cgroup.Kill(opt.cgroup, 10*time.Second); err != nil && !cgroup.Gone(opt.cgroup, err) {
			return fmt.Errorf("killing what is left in %s: %w", opt.cgroup, err)
		}
	}
	if !opt.remove {
		return nil
	}
	return cgroup.Remove(opt.cgroup)
}
