package main

import (
	"fmt"

	"github.com/runner-evidence/runner/bpf"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// load attaches the probes that runs share, and keeps them until unload.
func load(env *tool.Env) error {
	before, err := bpf.Load()
	if err != nil {
		return tool.Fail(tool.ExitCannot, fmt.Errorf("loading shared probes: %w", err))
	}
	what := "attached now"
	if before {
		what = "attached before"
	}
	env.Sayf("shared probes: %s; they stay until runner-capture --unload", what)
	return nil
}

// unload removes the probes that runs share, also those of runs that were killed.
func unload(env *tool.Env) error {
	sets, err := bpf.Unload()
	if err != nil {
		return tool.Fail(tool.ExitCannot, fmt.Errorf("removing shared probes: %w", err))
	}
	env.Sayf("sets of shared probes removed: %d", sets)
	return nil
}
