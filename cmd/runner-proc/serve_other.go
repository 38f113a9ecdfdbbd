//go:build !linux

package main

import (
	"context"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

func serve(context.Context, *tool.Env) error {
	return tool.Failf(tool.ExitCannot, "processes are started on Linux only")
}

func mapJobs(*tool.Env) error {
	return tool.Failf(tool.ExitCannot, "processes are started on Linux only")
}
