package main

import (
	"bufio"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/cmd/internal/evidence"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/verdict"
)

func run(ctx context.Context, env *tool.Env, opt Options) error {
	if opt.View == viewHTML {
		return writePage(ctx, env, opt)
	}
	e, err := evidence.Open(ctx, env)
	if err != nil {
		return err
	}
	defer e.Close()
	w := bufio.NewWriterSize(env.Stdout, 64<<10)
	p := printer{w: w, color: opt.Color, width: opt.Width}
	switch opt.View {
	case viewFiltered:
		err = listFiltered(ctx, env, e, opt, &p)
	case viewJSON, viewList:
		err = stream(ctx, env, e, opt, w, &p)
	default:
		m := newModel(together(e))
		if err = each(ctx, e, m.end, opt.Filter.takes, func(a *acts.Act) error {
			m.take(a)
			return nil
		}, m.wrapped.line); err == nil {
			s := screen{printer: p, m: m, opt: opt, rep: e.Report}
			s.print()
		}
	}
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return tool.CannotWrite("standard output", err)
	}
	return nil
}

// together reports whether the lines of each process are together in the record.
func together(e *evidence.Evidence) bool { return e.Report.Record.Origin == schemas.OriginRunner }

// each calls take for the acts that the filter takes, and end after each member.
func each(ctx context.Context, e *evidence.Evidence, end func(archive.Member), takes func(*acts.Act) bool, take func(*acts.Act) error, also ...func(*archive.Line)) error {
	r, done := newReader(ctx, e, func(a *acts.Act) error {
		if !takes(a) {
			return nil
		}
		return take(a)
	})
	defer done()
	line := func(l *archive.Line) error {
		for _, f := range also {
			f(l)
		}
		return r.Line(l)
	}
	return e.Read(ctx, archive.Visitor{Document: r.Document, Line: line, End: func(m archive.Member) error {
		if end(m); m.Name == schemas.MemberKernel {
			return r.Flush()
		}
		return nil
	}})
}

// newReader makes acts of the archive. The layer process comes after the kernel's in it, so a second reading
// goes along with the first one.
func newReader(ctx context.Context, e *evidence.Evidence, take func(*acts.Act) error) (r *acts.Reader, done func()) {
	r = &acts.Reader{Together: together(e), Notes: e.Report.Record.Notes, Take: take}
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, schemas.NoteProcesses.Code+":") }) {
		return r, func() {}
	}
	r.Processes = acts.NewProcesses(func(yield func(*schemas.ProcessEvent, error) bool) {
		err := e.Read(ctx, archive.Visitor{Layer: func(member string) bool { return member == schemas.MemberProcess }, Line: func(l *archive.Line) error {
			if p, ok := l.Event.(*schemas.ProcessEvent); ok && !yield(p, nil) {
				return errEnough
			}
			return nil
		}})
		if err != nil && err != errEnough {
			yield(nil, err)
		}
	}, r.Notes)
	return r, r.Processes.Close
}

// errEnough ends the reading.
var errEnough = errors.New("enough")

// stream writes a line for each act, while it reads. With --top it ends after so many.
func stream(ctx context.Context, env *tool.Env, e *evidence.Evidence, opt Options, w *bufio.Writer, p *printer) error {
	shown, limited := 0, env.Flag.IsSet("top")
	err := each(ctx, e, func(archive.Member) {}, opt.Filter.takes, func(a *acts.Act) error {
		if limited && shown == opt.Top {
			return errEnough
		}
		shown++
		if opt.View == viewList {
			p.listLine(a)
			return nil
		}
		b, err := schemas.MarshalShown(a)
		if err != nil {
			return err
		}
		w.Write(b)
		if err := w.WriteByte('\n'); err != nil {
			return tool.CannotWrite("standard output", err)
		}
		return nil
	})
	switch {
	case err == errEnough:
		env.Sayf("the first %s; there are more", counted(uint64(shown), "operation"))
		return nil
	case err == nil && shown == 0:
		env.Sayf("no operation of this record fits")
	}
	return err
}

// listFiltered writes a line for each value that a rule left out as noise.
func listFiltered(ctx context.Context, env *tool.Env, e *evidence.Evidence, opt Options, p *printer) error {
	shown, limited := 0, env.Flag.IsSet("top")
	err := e.Read(ctx, archive.Visitor{Line: func(l *archive.Line) error {
		f, ok := l.Event.(*schemas.FilteredEvent)
		switch {
		case !ok:
			return nil
		case limited && shown == opt.Top:
			return errEnough
		}
		shown++
		p.line("%-20s %s", verdict.Printable(f.Rule, unlimited), verdict.Printable(f.Value, unlimited))
		return nil
	}})
	switch {
	case err == errEnough:
		env.Sayf("the first %s; there are more", counted(uint64(shown), "value"))
		return nil
	case err == nil && shown == 0:
		env.Sayf("this record has no values that were left out as noise")
	}
	return err
}
