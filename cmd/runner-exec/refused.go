package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/confine"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// notStarted is the error of a command that was not started. If file or exec rules may be
// the reason, it says which.
func (o *Options) notStarted(err error, program string) error {
	refusal := child.Refusal(err, nothingDone)
	var coded *tool.Error
	if o.Files == nil || !errors.Is(err, fs.ErrPermission) || !errors.As(refusal, &coded) {
		return refusal
	}
	return tool.Fail(coded.Code, coded.Err, o.whoRefused(program), "what the rules say: runner-policy --check "+o.Policy)
}

// scopeGone is the error of a command that was not started because its cgroup is not there any more.
// That is removed after runner-capture has ended, which is known a moment later; somebody else can have
// removed it too.
func (s *supervisor) scopeGone(err error) error {
	select {
	case st := <-s.pipe.ended:
		s.pipe.note(st)
		st.early = true
		return errStage
	case <-time.After(patience):
		return tool.Failf(tool.ExitOwn, "the run's cgroup %s was removed: %w; %s", s.scope.path, err, nothingDone)
	}
}

// whoRefused says what the rules say about starting a program.
func (o *Options) whoRefused(program string) string {
	if place, err := filepath.EvalSymlinks(program); err == nil {
		program = place
	}
	if abs, err := filepath.Abs(program); err == nil {
		program = abs
	}
	for _, op := range []string{schemas.HookExec, schemas.HookRead} {
		if n, deny := o.Files.Decide([]byte(program), op); deny {
			return fmt.Sprintf("%s in %s denies to %s %s", confine.RuleName(o.Files, n, op), o.Policy, op, schemas.Text(program))
		}
	}
	return fmt.Sprintf("%s allows to execute %s: if a rule is the reason, it denies an interpreter or a directory", o.Policy, schemas.Text(program))
}
