package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/evidence"
	"github.com/runner-evidence/runner/cmd/internal/fold"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// judge says of an archive whether its run passed.
type judge struct {
	env   *tool.Env
	lint  *linter
	folds *fold.Set
}

func newJudge(env *tool.Env, opt *Options) (*judge, error) {
	l, err := newLinter(opt)
	return &judge{env, l, fold.Builtin()}, err
}

// judgement is what an archive says of its run.
type judgement struct {
	identity string // of the archive
	success  bool
	code     *int // exit status of the command, nil if a signal ended it
	ending   string
	failing  bool     // lint found something at or above the threshold
	violated []string // rules
	values   []entry  // of the capability surface, folded and sorted
}

// refusal is why an archive gave no judgement.
type refusal struct {
	kind    string
	code    int    // exit code of a tool that was given this archive
	message string // for a report: one line
	printed string // for people: all that was found
}

// of verifies an archive, reads it and lets runner-lint judge it, at the same time.
func (j *judge) of(ctx context.Context, path string) (*judgement, *refusal) {
	type linted struct {
		verdict *findings
		err     error
	}
	c := make(chan linted, 1)
	go func() {
		f, err := j.lint.judge(ctx, path)
		c <- linted{f, err}
	}()
	v, bad := j.read(ctx, path)
	l := <-c
	if bad != nil {
		return nil, bad
	}
	if l.err != nil {
		text := verdict.Printable(l.err.Error(), maxMessage)
		return nil, &refusal{kindLint, tool.ExitIO, text, fmt.Sprintf("%s: error: %s\n", j.env.Name, text)}
	}
	if l.verdict.identity != v.identity {
		text := fmt.Sprintf("%s was replaced while it was read", schemas.Text(path))
		return nil, &refusal{kindIO, tool.ExitIO, text, fmt.Sprintf("%s: error: %s\n", j.env.Name, text)}
	}
	v.failing, v.violated = l.verdict.failing, l.verdict.violated
	return v, nil
}

// read takes from a verified archive how the command ended and what it was able to do.
func (j *judge) read(ctx context.Context, path string) (*judgement, *refusal) {
	var said bytes.Buffer
	refused := func(err error) *refusal {
		r := &refusal{kind: kindIO, code: tool.ExitIO, printed: said.String()}
		var coded *tool.Error
		if errors.As(err, &coded) {
			r.code = coded.Code
		}
		if r.code == tool.ExitInput {
			r.kind = kindArchive
		}
		if coded == nil || coded.Err != nil {
			r.printed += fmt.Sprintf("%s: error: %v\n", j.env.Name, err)
			if coded != nil {
				for _, h := range coded.Hints {
					r.printed += fmt.Sprintf("%s: hint: %s\n", j.env.Name, h)
				}
			}
		}
		line, _, _ := strings.Cut(strings.TrimPrefix(r.printed, j.env.Name+": "), "\n")
		r.message = verdict.Printable(line, maxMessage)
		return r
	}
	e, err := evidence.Open(ctx, &tool.Env{Stdin: bytes.NewReader(nil), Stdout: io.Discard, Stderr: &said, Args: []string{path}, Name: j.env.Name})
	if err != nil {
		return nil, refused(err)
	}
	defer e.Close()
	rec := e.Report.Record
	v := &judgement{identity: e.Report.Identity, success: rec.Success, code: rec.ExitCode, ending: "did not say how it ended"}
	switch {
	case rec.Signal != nil:
		v.ending = fmt.Sprintf("was killed by signal %d", *rec.Signal)
	case rec.ExitCode != nil:
		v.ending = fmt.Sprintf("ended with exit status %d", *rec.ExitCode)
	}
	values := surface{folds: j.folds}
	if err = e.Read(ctx, archive.Visitor{SurfaceValue: values.take}); err != nil {
		return nil, refused(err)
	}
	v.values = values.sorted()
	return v, nil
}

// conclude judges what was made, and counts it.
func (s *session) conclude(ctx context.Context, j job, m made) {
	if m.nothing {
		return
	}
	run := Run{Index: j.index, Kind: m.kind, Message: m.message}
	if m.record != nil {
		run.Seed, run.DurationMS = &m.Seed, m.DurationMS
	}
	if run.Kind != "" {
		run.Status = statusInfra
		s.count(j, run, nil)
		return
	}
	v, bad := s.judge.of(ctx, m.archive)
	switch {
	case ctx.Err() != nil:
		return // interrupted: it is judged when the soak goes on
	case bad != nil && j.target != "":
		s.refuse(j, *bad)
		return
	case bad != nil:
		run.Status, run.Kind, run.Message = statusInfra, bad.kind, bad.message
	case m.record != nil && (m.Status == tool.ExitOwn && !ended(v, tool.ExitOwn) || (m.Status == 0) != v.success):
		run.Status, run.Kind = statusInfra, kindSubprocess
		run.Message = fmt.Sprintf("runner-exec ended with exit status %d, its archive says that the command %s", m.Status, v.ending)
	case v.failing || !v.success:
		run.Status, run.ViolatedRules = statusFail, v.violated
	default:
		run.Status, run.ViolatedRules = statusPass, v.violated
	}
	s.count(j, run, v)
}

// ended reports whether the command itself ended with this exit status.
func ended(v *judgement, code int) bool { return v.code != nil && *v.code == code }

// refuse notes an archive of --target that cannot be judged.
func (s *session) refuse(j job, r refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[j.index] = r
}

// count adds a run that is concluded.
func (s *session) count(j job, run Run, v *judgement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := j.series
	f.runs = append(f.runs, run)
	if run.Status == statusFail {
		f.failures++
	}
	if run.Status != statusPass {
		f.how[run.Index] = why(&run, v)
	}
	if v != nil && run.Status != statusInfra {
		for _, e := range v.values {
			f.seen.add(run.Index, e.set, e.value)
		}
	}
	s.progress.count(run.Status)
}

// why says why a run did not pass.
func why(run *Run, v *judgement) string {
	if run.Status == statusInfra {
		return run.Kind + ": " + run.Message
	}
	var parts []string
	if !v.success {
		parts = append(parts, "the command "+v.ending)
	}
	if v.failing {
		parts = append(parts, strings.Join(run.ViolatedRules, ", "))
	}
	return strings.Join(parts, "; ")
}
