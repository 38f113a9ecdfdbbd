//go:build !unix

package main

import (
	"context"
	"errors"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

func run(_ context.Context, env *tool.Env) error {
	if _, err := options(env); err != nil && !env.Flag.Bool("probe") {
		return err
	}
	return tool.Fail(tool.ExitCannot, errors.New("the shims are for systems like Linux: not on this system"))
}
