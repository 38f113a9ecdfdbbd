//go:build !linux

package main

import (
	"context"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const closerVerb = "--closer"

func closerMain() {}

func capture(context.Context, *tool.Env, options) error {
	return tool.Failf(tool.ExitCannot, "cannot observe here: kernel capture needs Linux")
}

func load(*tool.Env) error {
	return tool.Failf(tool.ExitCannot, "no probes here: kernel capture needs Linux")
}

func unload(*tool.Env) error {
	return tool.Failf(tool.ExitCannot, "no probes here: kernel capture needs Linux")
}

func probe(*tool.Env) error {
	return tool.Failf(tool.ExitCannot, "cannot observe here: kernel capture needs Linux")
}
