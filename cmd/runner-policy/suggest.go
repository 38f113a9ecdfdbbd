package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

var errSuggestOnly = errors.New("--suggest takes one log and no server")

// suggest prints a policy that allows what the sessions of a log did.
func suggest(env *tool.Env) error {
	if len(env.Args) > 0 || env.Flag.IsSet("policy") {
		return tool.Fail(tool.ExitUsage, errSuggestOnly, "runner-policy --suggest LOG >policy.yaml")
	}
	name := env.Flag.String("suggest")
	f, err := os.Open(name)
	if err != nil {
		return tool.CannotRead(name, err)
	}
	defer f.Close()
	var calls []*schemas.ToolDecision
	var requests []*schemas.RequestDecision
	ours, others := 0, 0
	lines := bufio.NewScanner(io.LimitReader(f, schemas.MaxLogBytes))
	lines.Buffer(nil, schemas.MaxLogLine+1)
	for n := 1; lines.Scan(); n++ {
		d, err := schemas.ParseDecisionLine(lines.Bytes())
		if err != nil {
			return tool.Fail(tool.ExitInput, fmt.Errorf("%s:%d: %w", name, n, err), "the log of runner-policy, as --log names it")
		}
		if d.Source != schemas.LogSource { // its policies are of another schema
			others++
			continue
		}
		ours++
		if d.Decision != nil {
			calls = append(calls, d.Decision)
		}
		if d.Request != nil {
			requests = append(requests, d.Request)
		}
	}
	if err := lines.Err(); err != nil {
		return tool.CannotRead(name, err)
	}
	if ours == 0 && others > 0 {
		return tool.Fail(tool.ExitInput, fmt.Errorf("%s: all of its lines are of %s, whose policies have another schema", name, schemas.LogSourceProc), "schemas/PROC.md says what such a policy is")
	}
	return env.Print(func(w io.Writer) { policy.Suggest(w, calls, requests) })
}
