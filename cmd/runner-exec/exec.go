package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/wrap"
)

// Run runs one command and its record. Its error carries the exit code; nil is
// a command that exited with 0 and a record that is whole.
func Run(o Options, env *tool.Env) error {
	tools, err := findStages(o)
	if err != nil {
		return err
	}
	program, err := child.Look(o.Command[0])
	if err != nil {
		return child.Refusal(err, nothingDone)
	}
	o.tellEngine(program, env)
	outputs, err := openOutputs(o)
	if err != nil {
		return err
	}
	defer outputs.discard()
	if err := o.room(env); err != nil {
		return err
	}
	if o.Stdouts() > 0 && tool.IsTerminal(env.Stdout) {
		return tool.Fail(tool.ExitUsage, tool.ErrTerminal, "redirect it, or name a file")
	}
	if outputs.archive != "" {
		o.Archive = outputs.archive // the resolved path: in runner-pack, /dev/stdout would be another file
	}
	// From here on a broken pipe is an error that we handle. If SIGPIPE ended
	// runner-exec, the command would go on without a supervisor.
	signals := child.WatchAll()

	s := &supervisor{opt: o, env: env, program: program, out: outputs, signals: signals, wrapped: wrap.Is(program, wrap.Dir())}
	if s.wrapped && o.Confine.Any() {
		return errWrappedConfined()
	}
	if o.Kernel {
		if s.scope, err = newScope(o.CgroupParent, o.RunID, env); err != nil {
			return err
		}
		defer s.scope.close()
		env.Infof("cgroup %s", s.scope.path)
	}
	if s.logs, err = newLogs(o); err != nil {
		return err
	}
	defer s.clearLogs()
	if o.Files, err = s.logs.reachable(o.Files); err != nil {
		return ownFailure(fmt.Errorf("finding the run's logs: %w", err))
	}
	if s.records, err = newRecords(o, s.wrapped, env); err != nil {
		return err
	}
	defer s.records.remove()
	o.record = s.records.args()
	if s.pipe, err = startPipeline(o, tools, outputs, s.scope, s.logs, env); err != nil {
		return s.giveUp(err)
	}
	return s.run()
}

// errWrappedConfined: what runner-exec takes away, the wrappers need until they start the command.
func errWrappedConfined() error {
	return tool.Fail(tool.ExitUsage, errors.New("--no-new-privs, --harden and file rules without LSM are not possible before a wrapper, which needs the rights that they take away"),
		"leave them out: runner-box and runner-net take more rights away than --no-new-privs", "enforce file rules by --file-mechanism lsm, where the kernel loads LSM programs")
}

// nothingDone completes the error of a command that was not started.
const nothingDone = "nothing was run, nothing was written"

// ownFailure gives an error that has no exit code, or that of a filter, the code 125, so that it is not
// mistaken for the command's own status.
func ownFailure(err error) error {
	var e *tool.Error
	if errors.Is(err, tool.ErrScratch) && errors.As(err, &e) && e.Code == tool.ExitIO {
		return tool.Fail(tool.ExitOwn, err, e.Hints...)
	}
	if err == nil || errors.As(err, &e) {
		return err
	}
	return tool.Fail(tool.ExitOwn, err)
}

// The command gets the real descriptors of the standard streams, unless --replayable asks for copies.
func stdoutOf(env *tool.Env) *os.File { return env.Files()[1] }
func stderrOf(env *tool.Env) *os.File { return env.Files()[2] }
func stdinOf(env *tool.Env) *os.File  { return env.Files()[0] }
