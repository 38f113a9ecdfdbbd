package main

import (
	"fmt"

	"github.com/runner-evidence/runner/cmd/internal/journal"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// result is what commit and revert print with --json.
type result struct {
	Schema   string   `json:"schema"`
	Plan     string   `json:"plan"`
	Status   string   `json:"status"`
	Already  bool     `json:"already"`  // it was so before: nothing was done
	Names    int      `json:"names"`    // of the directory that were changed, or taken back
	Requests int      `json:"requests"` // that were made, or taken back
	NotKept  []string `json:"not_kept"`
	Left     []string `json:"left"` // what could not be taken back
}

// printResult says how a commit or a revert ended. Something that could not be taken back is exit code 1.
func printResult(env *tool.Env, r *journal.Result) error {
	out := result{Schema: schemas.SchemaGateResult, Plan: r.Tx, Status: statusOf(r.Step), Already: r.Already, Names: r.Names, Requests: r.Effects, NotKept: append([]string{}, r.NotKept...), Left: append([]string{}, r.Left...)}
	var err error
	switch {
	case env.Flag.Bool("json"):
		b, e := schemas.Marshal(&out)
		if e != nil {
			return tool.Fail(tool.ExitIO, e)
		}
		_, err = env.Stdout.Write(append(b, '\n'))
	case env.Flag.Bool("q"):
	case r.Already:
		_, err = fmt.Fprintf(env.Stdout, "%s before: nothing was done\n", out.Status)
	default:
		_, err = fmt.Fprintf(env.Stdout, "%s: %d names, %d requests\n", out.Status, out.Names, out.Requests)
	}
	if err != nil {
		return tool.CannotWrite("standard output", err)
	}
	for _, what := range out.Left {
		env.Warnf("stays as it is: %s", what)
	}
	if len(out.Left) > 0 {
		return tool.Status(tool.ExitNo)
	}
	return nil
}

// statusOf is the status of a transaction by the last step of it; "" if nothing was begun.
func statusOf(s journal.Step) string {
	switch s {
	case journal.StepCommitted, journal.StepRevertRefused:
		return schemas.GateCommitted
	case journal.StepReverted:
		return schemas.GateReverted
	case journal.StepFailed:
		return schemas.GateFailed
	case "", journal.StepRefused, journal.StepUndone:
		return "" // as before
	}
	return schemas.GateStarted
}
