//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// terminate asks the server's process group to end.
func (s *server) terminate() { syscall.Kill(-s.process.Pid, syscall.SIGTERM) }

// kill ends the server's process group.
func (s *server) kill() { syscall.Kill(-s.process.Pid, syscall.SIGKILL) }

// reap ends what is left of the group and says how the server ended.
func (s *server) reap() ending {
	s.kill()
	if s.state == nil {
		s.state, _ = s.process.Wait()
	}
	if s.state == nil {
		return ending{code: tool.ExitOwn}
	}
	if ws, ok := s.state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ending{signal: int(ws.Signal())}
	}
	return ending{code: s.state.ExitCode()}
}

// watchSignals takes the signals that ask us to end. One that was ignored when we
// started stays so. SIGPIPE is told by the write that failed.
func watchSignals() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 4)
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM} {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	return c, func() { signal.Stop(c); signal.Stop(pipe) }
}
