//go:build unix

package child

import (
	"os"
	"syscall"
)

// BrokenPipe reports whether the process was killed because nobody read its output.
func (e Ending) BrokenPipe() bool { return e.Signal == int(syscall.SIGPIPE) }

// EndingOf is the ending of a process that was waited for.
func EndingOf(state *os.ProcessState) Ending {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Ending{Signal: int(ws.Signal())}
	}
	return Ending{Code: state.ExitCode()}
}

func signalName(n int) string { return syscall.Signal(n).String() }
