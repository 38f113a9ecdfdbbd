package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// dropTime bounds how long the program may think about one line. Its memory has a bound, too.
const dropTime = 2 * time.Second

// dropper asks the user's program about every line. Lines never pass through it:
// it only answers yes or no.
type dropper struct {
	text    string
	program *jq.Program
	n       uint64
}

func compileDrop(text string) (*dropper, error) {
	program, err := jq.CheckDrop(text)
	if err != nil {
		return nil, tool.Usagef("--drop: %v in %s", err, safe([]byte(text)))
	}
	return &dropper{text: text, program: program}, nil
}

// drops asks about one whole line. An answer that is not true or false is an
// error: a program that is wrong about a line must not quietly keep it.
func (d *dropper) drops(ctx context.Context, line []byte) (bool, error) {
	a, err := d.program.Ask(ctx, line, true, dropTime)
	switch {
	case errors.Is(err, jq.ErrTime), errors.Is(err, jq.ErrMemory):
		return false, d.wrong(line, err.Error())
	case err != nil:
		return false, tool.Fail(tool.ExitIO, fmt.Errorf("--drop: %w", err))
	case a.Fault != "":
		return false, d.wrong(line, a.Fault)
	case a.Count == 0:
		return false, d.wrong(line, "no answer")
	case a.Count > 1:
		return false, d.wrong(line, "more than one answer")
	case a.Kind != "boolean":
		return false, d.wrong(line, "the answer is not true or false but "+a.Kind)
	}
	if a.True {
		d.n++
	}
	return a.True, nil
}

func (d *dropper) wrong(line []byte, what string) error {
	return tool.Fail(tool.ExitUsage, fmt.Errorf("--drop: %s for the line %s", safe([]byte(what)), safe(line)),
		"the program must answer true (drop) or false (keep) for every line")
}

// note declares the program in the health notes.
func (d *dropper) note() string {
	return schemas.NoteDrop.Format(d.text, schemas.DropDigest(d.text), d.n)
}
