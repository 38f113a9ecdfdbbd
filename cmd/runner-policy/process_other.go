//go:build !unix

package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

func apart() *syscall.SysProcAttr { return nil }

func widen(io.Writer) {}

func hide() {}

func (s *server) terminate() { s.process.Kill() }
func (s *server) kill()      { s.process.Kill() }

func (s *server) reap() ending {
	if s.state == nil {
		return ending{code: tool.ExitOwn}
	}
	return ending{code: s.state.ExitCode()}
}

func watchSignals() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, os.Interrupt)
	return c, func() { signal.Stop(c) }
}
