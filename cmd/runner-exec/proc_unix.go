//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

const brokenPipe = int(syscall.SIGPIPE)

func background(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func endingOf(state *os.ProcessState) ending {
	ws, ok := state.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		n := int(ws.Signal())
		return ending{signal: n, text: fmt.Sprintf("was killed by signal %d (%v)", n, ws.Signal())}
	}
	return exited(state.ExitCode())
}
