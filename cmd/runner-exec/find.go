package main

import (
	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// stageNames are the stages that o needs, in the order of the pipeline.
func stageNames(o Options) []string {
	var names []string
	if o.Kernel {
		names = append(names, "runner-capture")
	}
	if o.Stream == "" {
		names = append(names, filters...)
	}
	return names
}

// findStages finds the needed stages next to this binary, then on PATH.
func findStages(o Options) (map[string]string, error) {
	found := map[string]string{}
	for _, name := range stageNames(o) {
		path, err := child.Sibling(name)
		if err != nil {
			return nil, tool.Fail(tool.ExitOwn, err, "put all runner- tools into one directory")
		}
		found[name] = path
	}
	return found, nil
}
