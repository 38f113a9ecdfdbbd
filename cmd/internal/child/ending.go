package child

import (
	"fmt"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// Ending is how a process ended.
type Ending struct {
	Code   int   // exit status, valid if Signal is 0 and Err nil
	Signal int   // that killed it; 0: none did
	Err    error // its end could not be determined
}

// Status is the exit code that reports e: the program's own, or 128 and the number of the
// signal.
func (e Ending) Status() int {
	switch {
	case e.Err != nil:
		return tool.ExitOwn
	case e.Signal != 0:
		return 128 + e.Signal
	}
	return e.Code
}

// String says how the process ended, as the end of a sentence about it.
func (e Ending) String() string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Signal != 0:
		return fmt.Sprintf("was killed by signal %d (%v)", e.Signal, signalName(e.Signal))
	}
	return fmt.Sprintf("ended with exit status %d", e.Code)
}

func wait(p *os.Process) Ending {
	state, err := p.Wait()
	if err != nil {
		return Ending{Err: err}
	}
	return EndingOf(state)
}
