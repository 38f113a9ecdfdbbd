package main

import (
	"fmt"

	"github.com/runner-evidence/runner/cmd/internal/junit"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// caseLine is what became of one case.
type caseLine struct {
	Schema   string       `json:"schema"`
	SuiteID  string       `json:"suite_id"`
	TaskID   string       `json:"task_id,omitempty"`
	Name     string       `json:"name"`
	Outcome  string       `json:"outcome"`
	Why      string       `json:"why,omitempty"`
	Expected *[]byte      `json:"expected_b64,omitzero"`
	Actual   *[]byte      `json:"actual_b64,omitzero"`
	Error    *runnerError `json:"runner_error,omitzero"`
}

// Statuses of a suite.
const (
	statusOK      = "ok"
	statusRuntime = "runtime_error" // the program gave no answer to a case
	statusRunner  = "runner_error"  // a required file is not as it must be
)

type empty struct{}

// suiteReport is the last line about a suite. Its first keys are those of the seed's RunnerReport.
type suiteReport struct {
	Status  string       `json:"status"`
	Stdout  []byte       `json:"stdout_b64"`
	Stderr  string       `json:"stderr"`
	Mem     empty        `json:"mem_stats"`
	Sched   empty        `json:"sched_stats"`
	Error   *runnerError `json:"runner_error,omitzero"`
	SuiteID string       `json:"suite_id"`
	World   string       `json:"world"`
	Cases   uint64       `json:"cases"`
	Passed  uint64       `json:"passed"`
	Failed  uint64       `json:"failed"`
}

// output writes what became of the cases.
type output struct {
	env   *tool.Env
	json  bool
	junit junit.Suite
}

func (o *output) write(v any, text string) error {
	b := []byte(text)
	if o.json {
		var err error
		if b, err = schemas.Marshal(v); err != nil {
			return tool.Fail(tool.ExitIO, err)
		}
		b = append(b, '\n')
	}
	if _, err := o.env.Stdout.Write(b); err != nil {
		return tool.CannotWrite("standard output", err)
	}
	return nil
}

// maxShown is how much of a text people see.
const maxShown = 400

func (o *output) line(c *caseLine) error {
	c.Why = schemas.Text(c.Why)
	class := c.SuiteID
	if c.TaskID != "" {
		class += " " + c.TaskID
	}
	o.junit.Name = "runner-suite"
	o.junit.Cases = append(o.junit.Cases, junit.Case{Name: c.Name, Class: class, Outcome: junitOutcomes[c.Outcome], Message: c.Why})
	mark := map[string]string{passed: "ok", failedCase: "FAILED", broken: "BROKEN", notRun: "not run"}[c.Outcome]
	text := fmt.Sprintf("%-8s %s %s\n", mark, verdict.Printable(class, maxShown), verdict.Printable(c.Name, maxShown))
	if c.Why != "" {
		text += fmt.Sprintf("         %s\n", verdict.Printable(c.Why, maxShown))
	}
	return o.write(c, text)
}

func (o *output) report(r *suiteReport) error {
	text := fmt.Sprintf("%s: %d of %d passed\n", verdict.Printable(r.SuiteID, maxShown), r.Passed, r.Cases)
	if r.Error != nil {
		text += fmt.Sprintf("%s: %s\n", verdict.Printable(r.Error.Message, maxShown), r.Error.Hint)
	}
	r.Stderr = schemas.Text(r.Stderr)
	if r.Stdout == nil {
		r.Stdout = []byte{}
	}
	return o.write(r, text)
}
