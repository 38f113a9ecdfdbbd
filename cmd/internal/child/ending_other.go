//go:build !unix

package child

import (
	"os"
	"strconv"
)

// BrokenPipe is false: there are no signals here.
func (e Ending) BrokenPipe() bool { return false }

// EndingOf is the ending of a process that was waited for.
func EndingOf(state *os.ProcessState) Ending { return Ending{Code: state.ExitCode()} }

func signalName(n int) string { return strconv.Itoa(n) }
