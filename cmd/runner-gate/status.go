package main

import (
	"bufio"
	"context"
	"fmt"

	"github.com/runner-evidence/runner/cmd/internal/journal"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// committedPlan is what status says of a plan, with --json a line each.
type committedPlan struct {
	Schema     string   `json:"schema"`
	Plan       string   `json:"plan"`
	Status     string   `json:"status"`
	Step       string   `json:"step"`
	Directory  string   `json:"directory"`
	CannotUndo []string `json:"cannot_undo"`
}

// status prints each plan that the journal knows, and how far it came.
func status(_ context.Context, env *tool.Env) error { return ofJournal(env, statuses) }

// ofJournal prints what is in a journal.
func ofJournal(env *tool.Env, print func(*tool.Env, *journal.Journal, *bufio.Writer) error) error {
	dir, err := journalDir(env, "runner-gate "+env.Command+" --journal JDIR")
	if err != nil {
		return err
	}
	j, err := openJournal(dir)
	if err != nil {
		return err
	}
	defer j.Close()
	w := bufio.NewWriter(env.Stdout)
	if err := print(env, j, w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return tool.CannotWrite("standard output", err)
	}
	return nil
}

func statuses(env *tool.Env, j *journal.Journal, w *bufio.Writer) error {
	for _, s := range j.Status() {
		left, err := j.CannotUndo(s.Tx, &requests{})
		if err != nil {
			return journalError(err)
		}
		p := committedPlan{Schema: schemas.SchemaGateStatus, Plan: s.Tx, Status: statusOf(s.Step), Step: string(s.Step), Directory: s.Directory, CannotUndo: append([]string{}, left...)}
		if p.Status == "" {
			p.Status = schemas.GateNot
		}
		if env.Flag.Bool("json") {
			b, err := schemas.Marshal(&p)
			if err != nil {
				return tool.Fail(tool.ExitIO, err)
			}
			w.Write(append(b, '\n'))
			continue
		}
		fmt.Fprintf(w, "%s: plan %s in %s\n", p.Status, p.Plan, verdict.Printable(p.Directory, maxShownName))
		for _, what := range p.CannotUndo {
			fmt.Fprintf(w, "  cannot be taken back: %s\n", verdict.Printable(what, maxShownName))
		}
	}
	return nil
}

// logJournal prints each step of the journal.
func logJournal(_ context.Context, env *tool.Env) error { return ofJournal(env, steps) }

func steps(env *tool.Env, j *journal.Journal, w *bufio.Writer) error {
	for _, r := range j.Log() {
		if env.Flag.Bool("json") {
			b, err := schemas.Marshal(&r)
			if err != nil {
				return tool.Fail(tool.ExitIO, err)
			}
			w.Write(append(b, '\n'))
			continue
		}
		fmt.Fprintf(w, "%d %s %s %s", r.Seq, r.Time, r.Tx, r.Step)
		for _, more := range []string{r.Path, r.Key, string(r.Receipt), r.Error} {
			if more != "" {
				fmt.Fprintf(w, " %s", verdict.Printable(more, maxShownName))
			}
		}
		for _, c := range r.Conflicts {
			fmt.Fprintf(w, "\n    %s: %s", verdict.Printable(c.Path, maxShownName), verdict.Printable(c.Why, maxShownName))
		}
		fmt.Fprintln(w)
	}
	return nil
}
