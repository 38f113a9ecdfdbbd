//go:build !unix

package main

import (
	"errors"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// logDir would hold FIFOs, which this system does not have.
type logDir struct{}

func makeLogDir(Options, []schemas.Layer) (*logDir, error) {
	return nil, tool.Fail(tool.ExitCannot,
		errors.New("logs of the command are collected through FIFOs, which this system does not have"),
		"run without --policy, --policy-log and --agent-shim, and give the logs to runner-correlate yourself")
}

func (d *logDir) collect(string, chan<- error) (string, collector, error) {
	return "", nil, errors.ErrUnsupported
}

func (d *logDir) remove() error { return nil }

func keeper() {}
