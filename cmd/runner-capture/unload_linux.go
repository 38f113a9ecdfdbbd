package main

import (
	"fmt"

	"github.com/runner-evidence/runner/bpf"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// unload removes the probes that runs share, also those of runs that were killed.
func unload(env *tool.Env) error {
	sets, err := bpf.Unload()
	if err != nil {
		return tool.Fail(tool.ExitCannot, fmt.Errorf("removing shared probes: %w", err))
	}
	env.Sayf("sets of shared probes removed: %d", sets)
	return nil
}
