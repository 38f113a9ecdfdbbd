//go:build unix && !linux

package main

import (
	"io"
	"syscall"
)

// apart puts the server into a process group of its own. If the proxy is killed, the
// end of the pipes alone tells the server.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func widen(io.Writer) {}

func hide() {}
