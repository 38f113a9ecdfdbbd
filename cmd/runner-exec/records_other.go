//go:build !unix

package main

import (
	"errors"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// records would be what wrappers record, which this system does not have.
type records struct{}

func newRecords(o Options, _ bool, _ *tool.Env) (*records, error) {
	if o.Replayable {
		return nil, tool.Fail(tool.ExitCannot, errors.New("--replayable is not possible on this system"))
	}
	return nil, nil
}

func (r *records) files(given []*os.File) ([]*os.File, error) { return given, nil }

func (r *records) started() {}

func (r *records) check([]string) error { return nil }

func (r *records) finish(*supervisor) error { return nil }

func (r *records) remove() {}

func (r *records) args() []string { return nil }
