package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// stageNames are the stages that o needs, in the order of the pipeline.
func stageNames(o Options) []string {
	var names []string
	if o.Kernel {
		names = append(names, "runner-capture")
	}
	if o.Stream == "" {
		names = append(names, "runner-normalize", "runner-correlate", "runner-pack")
	}
	return names
}

// findStages finds the needed stages next to this binary, then on PATH.
func findStages(o Options) (map[string]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the other stages: %w", err)
	}
	found := map[string]string{}
	for _, name := range stageNames(o) {
		sibling := filepath.Join(filepath.Dir(self), name)
		if path, err := exec.LookPath(sibling); err == nil {
			found[name] = path
		} else if path, err := exec.LookPath(name); err == nil {
			found[name] = path
		} else {
			return nil, tool.Fail(tool.ExitOwn,
				fmt.Errorf("%s is neither in %s nor on PATH", name, filepath.Dir(self)),
				"put all runner- tools into one directory")
		}
	}
	return found, nil
}
