package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/fold"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

func diff(ctx context.Context, env *tool.Env, opt *Options) error {
	switch opt.Mode {
	case modeFolds:
		return fold.List(env.Stdout)
	case modeExact:
		return exact(ctx, env, opt)
	case modeWrite:
		return writeLock(ctx, env, opt)
	case modeUpdate:
		return updateLock(ctx, env, opt)
	}
	base, err := baseline(ctx, env, opt)
	if err != nil {
		return err
	}
	fresh, err := readRuns(ctx, env, []string{opt.New}, opt.Folds)
	if err != nil {
		return err
	}
	defer opt.Ignore.close()
	c, err := compare(base, fresh, opt.FailOn, func(k *key, group string) (string, error) { return opt.Ignore.of(ctx, k, group) })
	if err != nil {
		return err
	}
	if opt.Report != "" {
		if err := env.WriteOutput(opt.Report, newReport(c, opt).write); err != nil {
			return err
		}
	}
	if opt.Report != "-" {
		if err := env.WriteOutput("-", func(w io.Writer) error { return form(w, c, opt) }); err != nil {
			return err
		}
	}
	switch {
	case c.verdict == schemas.VerdictInconclusive:
		return tool.Status(tool.ExitCannot)
	case c.blocking > 0:
		return tool.Status(tool.ExitNo)
	}
	return nil
}

// form writes the comparison in the form of --format.
func form(w io.Writer, c *comparison, opt *Options) error {
	switch opt.Format {
	case formatJSON:
		return newReport(c, opt).write(w)
	case formatMarkdown:
		return writeMarkdown(w, c, opt)
	case formatSARIF:
		return writeSARIF(w, c, opt)
	case formatJUnit:
		return writeJUnit(w, c, opt)
	}
	return writeText(w, c, opt)
}

// baseline reads the lock file or the archives that the new run is compared with.
func baseline(ctx context.Context, env *tool.Env, opt *Options) (*side, error) {
	if opt.Mode != modeLock && opt.Mode != modeUpdate {
		return readRuns(ctx, env, opt.Bases, opt.Folds)
	}
	s, err := readLock(opt.Lock)
	if err != nil {
		return nil, err
	}
	return s, opt.foldsOf(env, s.lock)
}

// foldsOf makes the folds those of a lock file: other ones would give other items. Folders are another one on
// each machine, so the call has them.
func (opt *Options) foldsOf(env *tool.Env, l *lockFile) error {
	given := opt.Folds
	opt.Folds = given.WithRules(l.folds)
	if rulesGiven(env) && !slices.Equal(opt.Folds.Names(), given.Names()) {
		return tool.Fail(tool.ExitUsage, fmt.Errorf("--fold: %s was made with the folds %s", opt.Lock, strings.Join(l.folds, ", ")), "give folders only, or write the lock again")
	}
	for _, name := range l.folds {
		if !slices.Contains(opt.Folds.Names(), name) {
			return tool.Fail(tool.ExitUsage, fmt.Errorf("%s was made with the fold %s, which this call lacks", opt.Lock, verdict.Printable(name, 100)), "--fold "+verdict.Printable(name, 100)+"=FOLDER")
		}
	}
	for _, name := range opt.Folds.Names() {
		if !slices.Contains(l.folds, name) {
			return tool.Fail(tool.ExitUsage, fmt.Errorf("%s was made without the fold %s", opt.Lock, name), "leave it out, or write the lock again")
		}
	}
	return nil
}

// rulesGiven reports whether the call names rules.
func rulesGiven(env *tool.Env) bool {
	return slices.ContainsFunc(env.Flag.StringSlice("fold"), func(v string) bool { return !strings.Contains(v, "=") })
}

func readRuns(ctx context.Context, env *tool.Env, names []string, f *fold.Set) (*side, error) {
	s, err := readAll(ctx, env, names, f, true)
	if errors.Is(err, errContract) {
		s, err = readAll(ctx, env, names, f, false)
	}
	return s, err
}

func readAll(ctx context.Context, env *tool.Env, names []string, f *fold.Set, ahead bool) (*side, error) {
	s := newSide()
	for _, name := range names {
		if err := s.read(ctx, env, name, f, ahead); err != nil {
			return nil, err
		}
	}
	s.finish()
	return s, nil
}

// writeLock makes a lock file of runs.
func writeLock(ctx context.Context, env *tool.Env, opt *Options) error {
	s, err := readRuns(ctx, env, opt.Bases, opt.Folds)
	if err != nil {
		return err
	}
	if err := s.sound(env, doubtful(newSideLike(s), s)); err != nil {
		return err
	}
	if err := s.save(opt.Lock, opt.Folds.Names()); err != nil {
		return err
	}
	runs := "1 run"
	if len(s.runs) > 1 {
		runs = fmt.Sprintf("%d runs", len(s.runs))
	}
	env.Sayf("%s has %d items of %s", opt.Lock, s.items.count, runs)
	return nil
}

// newSideLike is an empty side with the same coverage.
func newSideLike(s *side) *side { return &side{coverage: s.coverage} }

// updateLock adds what is new in a run to a lock file.
func updateLock(ctx context.Context, env *tool.Env, opt *Options) error {
	s, err := baseline(ctx, env, opt)
	if err != nil {
		return err
	}
	fresh, err := readRuns(ctx, env, []string{opt.New}, opt.Folds)
	if err != nil {
		return err
	}
	if err := s.sound(env, doubtful(s, fresh)); err != nil {
		return err
	}
	added := 0
	for i := range fresh.items.all() {
		if s.items.get(i.key) == nil {
			own := s.items.add(i.key)
			own.in, own.of = i.in, 1
			added++
		}
	}
	if err := s.save(opt.Lock, opt.Folds.Names()); err != nil {
		return err
	}
	env.Sayf("%s: %d items added, %d in all", opt.Lock, added, s.items.count)
	return nil
}

// sound refuses to write a lock file of what was not wholly seen.
func (s *side) sound(env *tool.Env, doubts []doubt) error {
	if len(doubts) == 0 {
		return nil
	}
	for _, d := range doubts {
		env.Warnf("%s", verdict.Printable(d.What, maxShownName))
	}
	return tool.Fail(tool.ExitCannot, fmt.Errorf("no lock file was written: the runs were not completely observed, or not in the same way"),
		"measure again; runs with another coverage need a lock file of their own")
}
