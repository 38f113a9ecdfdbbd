package main

import (
	"fmt"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// ending is how a process ended.
type ending struct {
	code   int    // exit status, valid if signal is 0
	signal int    // 0: it exited
	text   string // for people
}

func exited(code int) ending {
	return ending{code: code, text: fmt.Sprintf("ended with exit status %d", code)}
}

// status is the exit code that stands for e.
func (e ending) status() int {
	if e.signal != 0 {
		return 128 + e.signal
	}
	return e.code
}

// severity sorts ends of stages from cause to consequence.
func (e ending) severity() int {
	switch {
	case e.signal == brokenPipe && e.signal != 0:
		return 4
	case e.signal != 0:
		return 0
	case e.code == tool.ExitInput:
		return 3
	case e.code == tool.ExitOK:
		return 5
	}
	return 1
}

func (e ending) finished(runID string) schemas.RunFinished {
	f := schemas.RunFinished{Schema: schemas.SchemaEvent, RunID: runID, Seq: 1, Type: "run_finished"}
	if e.signal != 0 {
		f.Signal = &e.signal
	} else {
		f.ExitCode = &e.code
		f.Success = e.code == 0
	}
	return f
}
