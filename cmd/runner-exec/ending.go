package main

import (
	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// severity ranks how stages ended: the lower the number, the more likely this end
// caused the others.
func severity(e child.Ending) int {
	switch {
	case e.BrokenPipe():
		return 4
	case e.Signal != 0:
		return 0
	case e.Err == nil && e.Code == tool.ExitInput:
		return 3
	case e.Err == nil && e.Code == tool.ExitOK:
		return 5
	}
	return 1
}

// runFinished is the line that ends the run's events.
func runFinished(runID string, e child.Ending) schemas.RunFinished {
	f := schemas.RunFinished{Schema: schemas.SchemaEvent, RunID: runID, Seq: 1, Type: schemas.TypeRunFinished}
	if e.Signal != 0 {
		f.Signal = &e.Signal
		return f
	}
	code := e.Status()
	f.ExitCode, f.Success = &code, code == 0
	return f
}
