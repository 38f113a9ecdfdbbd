package main

import (
	"bytes"
	"context"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/assertion"
	"github.com/runner-evidence/runner/cmd/internal/closure"
	"github.com/runner-evidence/runner/cmd/internal/evidence"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// result is what is known of an archive once it was judged.
type result struct {
	opt     Options
	signals map[string]schemas.SignalDetail
	report  schemas.LintReport
	closure schemas.ClosureScore
}

func run(ctx context.Context, env *tool.Env, opt Options) error {
	if opt.List != "" {
		return list(env, opt.List)
	}
	e, err := evidence.Open(ctx, env)
	if err != nil {
		return err
	}
	defer e.Close()
	r, failing, err := lint(ctx, schemas.Text(e.Name), e.Report, opt, func(v archive.Visitor) error { return e.Read(ctx, v) })
	if err != nil {
		return err
	}
	for _, f := range opt.Files {
		b, err := f.make(r)
		if err != nil {
			return tool.Fail(tool.ExitIO, err)
		}
		if err := write(f.path, b); err != nil {
			return err
		}
	}
	if err := r.print(env.Stdout); err != nil {
		return err
	}
	if failing > 0 {
		return tool.Status(tool.ExitNo)
	}
	return nil
}

// lint reads an archive once and judges it. The report is that of runner-verify.
func lint(ctx context.Context, name string, report *verdict.Report, opt Options, read func(archive.Visitor) error) (r *result, failing int, err error) {
	var programs []*assertion.Assertion
	for _, p := range opt.Packs {
		for i := range p.Rules {
			programs = append(programs, p.Rules[i].Assert)
		}
	}
	kept := assertion.Collect(programs)
	rec := closure.New()
	err = read(archive.Visitor{
		Document: func(d archive.Document) error {
			kept.Document(d)
			return rec.Document(d)
		},
		Line: func(l *archive.Line) error {
			kept.Line(l)
			return rec.Line(l)
		},
		End: rec.End,
	})
	if err != nil {
		return nil, 0, err
	}
	r = &result{opt: opt, signals: rec.Signals()}
	r.closure = rec.Score(r.signals)
	j := judge{documents: kept.Documents(report), blind: assertion.Blind(report.Record), signals: r.signals}
	results, err := j.all(ctx, opt.Packs)
	if err != nil {
		return nil, 0, tool.Fail(tool.ExitIO, err)
	}
	r.report = schemas.LintReport{SchemaVersion: schemas.VersionLintReport, GeneratedAt: opt.GeneratedAt, Archive: name, RunID: report.RunID,
		Identity: report.Identity, FailOn: opt.FailOn.String(), Results: results, Completeness: closure.Complete(requires(opt.Packs), r.signals), Closure: r.closure.Score}
	for _, p := range opt.Packs {
		r.report.Packs = append(r.report.Packs, p.PackRef)
	}
	r.report.Findings, failing = count(results, opt.FailOn)
	r.report.Passed = failing == 0
	return r, failing, nil
}

func (r *result) reportJSON() ([]byte, error) { return document(&r.report) }

func (r *result) closureJSON() ([]byte, error) {
	return document(&schemas.Closure{SchemaVersion: schemas.VersionClosure, GeneratedAt: r.opt.GeneratedAt, BundleDigest: r.report.Identity,
		PackContext: r.report.Packs, Completeness: r.report.Completeness, Closure: r.closure})
}

// document is a JSON document with a final LF.
func document(v any) ([]byte, error) {
	b, err := schemas.Marshal(v)
	return append(b, '\n'), err
}

func write(path string, b []byte) error {
	f, err := tool.CreateAtomic(path)
	if err != nil {
		return tool.CannotWrite(path, err)
	}
	defer f.Abort()
	if _, err := bytes.NewReader(b).WriteTo(f); err != nil {
		return tool.CannotWrite(path, err)
	}
	if err := f.Commit(); err != nil {
		return tool.CannotWrite(path, err)
	}
	return nil
}

// print writes the answer to standard output.
func (r *result) print(w io.Writer) error {
	b, err := []byte(nil), error(nil)
	switch {
	case r.opt.JSON:
		b, err = r.reportJSON()
	case r.opt.Explain != "":
		b = r.explain(r.opt.Explain)
	default:
		b = r.text()
	}
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	if _, err := w.Write(b); err != nil {
		return tool.CannotWrite("standard output", err)
	}
	return nil
}
