//go:build !linux

package main

import (
	"context"
	"errors"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// run is only possible where there are namespaces.
func run(context.Context, *tool.Env, Options) error {
	return tool.Fail(tool.ExitCannot, errors.New("a replay needs the namespaces of Linux"))
}
