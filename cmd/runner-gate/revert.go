package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/runner-evidence/runner/cmd/internal/journal"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// revert takes a commit back.
func revert(ctx context.Context, env *tool.Env) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, terminate)
	defer stop()
	dir, err := journalDir(env, "runner-gate revert --journal JDIR")
	if err != nil {
		return err
	}
	s, err := newSender(env)
	if err != nil {
		return err
	}
	id := ""
	if name := env.Flag.String("plan"); name != "" {
		if _, _, id, err = readPlan(name); err != nil {
			return err
		}
	}
	res, err := takeBack(ctx, env, dir, id, s)
	if err != nil {
		return err
	}
	return printResult(env, res)
}

// takeBack takes the commit of a plan back, or the only one that can be taken back.
func takeBack(ctx context.Context, env *tool.Env, dir, id string, s *sender) (*journal.Result, error) {
	j, err := openJournal(dir)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	if id == "" {
		if id, err = onlyOne(j); err != nil {
			return nil, err
		}
	}
	d := &requests{sender: s}
	left, err := j.CannotUndo(id, d)
	if err != nil {
		return nil, journalError(err)
	}
	for _, what := range left {
		env.Warnf("cannot be taken back: %s", schemas.Text(what))
	}
	res, err := j.Revert(ctx, id, d)
	for _, lost := range notKept(res) {
		env.Warnf("not kept: %s", lost)
	}
	return res, journalError(err)
}

// openJournal opens a journal that is there.
func openJournal(dir string) (*journal.Journal, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, tool.CannotRead(dir, err)
	}
	j, err := journal.Open(dir)
	return j, journalError(err)
}

// onlyOne is the one transaction of a journal that can be taken back.
func onlyOne(j *journal.Journal) (string, error) {
	var open []string
	for _, s := range j.Status() {
		if s.Unfinished || statusOf(s.Step) == schemas.GateCommitted {
			open = append(open, s.Tx)
		}
	}
	switch len(open) {
	case 0:
		return "", tool.Failf(tool.ExitNo, "nothing in the journal can be taken back")
	case 1:
		return open[0], nil
	}
	return "", tool.Fail(tool.ExitUsage, tool.Failf(tool.ExitUsage, "%d commits can be taken back, the last one is that of plan %s", len(open), open[len(open)-1]), "name one: runner-gate revert --journal JDIR --plan plan.json")
}

// journalDir is the value of --journal.
func journalDir(env *tool.Env, example string) (string, error) {
	if err := env.NotEmpty("journal", "plan"); err != nil {
		return "", err
	}
	if err := env.NoOperands(); err != nil {
		return "", err
	}
	dir := env.Flag.String("journal")
	if dir == "" {
		return "", tool.Missing("--journal", example)
	}
	return dir, nil
}
