package main

import (
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
		if err := tool.WriteFile(f.path, func(w io.Writer) error { return f.write(r, w) }); err != nil {
			return err
		}
	}
	if err := env.WriteOutput("-", r.print); err != nil {
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

func (r *result) reportJSON(w io.Writer) error { return document(w, &r.report) }

func (r *result) closureJSON(w io.Writer) error {
	return document(w, &schemas.Closure{SchemaVersion: schemas.VersionClosure, GeneratedAt: r.opt.GeneratedAt, BundleDigest: r.report.Identity,
		PackContext: r.report.Packs, Completeness: r.report.Completeness, Closure: r.closure})
}

// document writes a JSON document with a final LF.
func document(w io.Writer, v any) error {
	b, err := schemas.MarshalShown(v)
	if err == nil {
		_, err = w.Write(append(b, '\n'))
	}
	return err
}

// print writes the answer.
func (r *result) print(w io.Writer) error {
	if r.opt.JSON {
		return r.reportJSON(w)
	}
	if r.opt.Explain != "" {
		return tool.Bytes(r.explain(r.opt.Explain))(w)
	}
	return tool.Bytes(r.text())(w)
}
