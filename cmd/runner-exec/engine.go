package main

import (
	"path/filepath"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// tellEngine says before the start that the command is a container engine that starts its
// containers outside of the run's cgroup, and what to type instead. What is found out only
// while it runs, runner-capture says.
func (o *Options) tellEngine(program string, env *tool.Env) {
	engine := schemas.EngineOfProgram(program)
	if target, err := filepath.EvalSymlinks(program); engine == nil && err == nil {
		engine = schemas.EngineOfProgram(target)
	}
	if o.Kernel && engine != nil && engine.Leaves(o.Command[1:]) {
		env.Sayf("%s starts containers outside of this run's cgroup, so the record will not have what they do; %s", engine.Name, engine.Do)
	}
}
