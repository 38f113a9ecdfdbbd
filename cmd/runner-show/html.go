package main

import (
	"bufio"
	"context"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/cmd/internal/evidence"
	"github.com/runner-evidence/runner/cmd/internal/page"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// target is where the page goes: standard output, or a file that is there only when it is whole.
type target struct {
	io.Writer
	name string
	file *tool.AtomicFile
}

// openTarget looks at the place of the page before the archive is read. A file that is not
// a page is kept, unless it is forced.
func openTarget(env *tool.Env, path string, force bool) (*target, error) {
	if path == "-" {
		return &target{Writer: env.Stdout, name: "standard output"}, nil
	}
	if err := tool.Replaceable(force, path, "a page of runner-show", tool.Begins(page.Head)); err != nil {
		return nil, err
	}
	f, err := tool.CreateAtomic(path)
	if err != nil {
		return nil, tool.CannotWrite(path, err)
	}
	return &target{Writer: f, name: path, file: f}, nil
}

func (t *target) close() {
	if t.file != nil {
		t.file.Abort()
	}
}

func (t *target) commit() error {
	if t.file == nil {
		return nil
	}
	if err := t.file.Commit(); err != nil {
		return tool.CannotWrite(t.name, err)
	}
	return nil
}

// writePage writes the page of --html.
func writePage(ctx context.Context, env *tool.Env, opt Options) error {
	to, err := openTarget(env, opt.HTML, opt.Force)
	if err != nil {
		return err
	}
	defer to.close()
	e, err := evidence.Open(ctx, env)
	if err != nil {
		return err
	}
	defer e.Close()
	c := newCollector(together(e), opt)
	if err := c.read(ctx, e); err != nil {
		return err
	}
	w := bufio.NewWriterSize(to, 64<<10)
	if err := c.page(e.Report).Write(w); err != nil {
		return tool.CannotWrite(to.name, err)
	}
	if err := w.Flush(); err != nil {
		return tool.CannotWrite(to.name, err)
	}
	if err := to.commit(); err != nil {
		return err
	}
	if to.file != nil {
		env.Sayf("%s: %s in %s", to.name, counted(c.model.all.acts, "operation"), counted(uint64(len(c.model.processes)+c.model.left), "process"))
	}
	return nil
}

// collector takes what a page needs out of an archive, in one reading.
type collector struct {
	model    *model
	data     *page.Data
	timeline page.Timeline
	opt      Options
	listed   map[string]bool // tool calls that operations of the page are listed for
}

func newCollector(together bool, opt Options) *collector {
	return &collector{model: newModel(together), data: page.NewData(), opt: opt, listed: map[string]bool{}}
}

func (c *collector) read(ctx context.Context, e *evidence.Evidence) error {
	r, done := newReader(ctx, e, c.act)
	defer done()
	return e.Read(ctx, archive.Visitor{
		Document: r.Document,
		SurfaceValue: func(set int, value []byte) error {
			c.data.Pair(&c.data.Surface, schemas.SurfaceSets[set], string(value))
			return nil
		},
		Line: func(l *archive.Line) error {
			c.line(l.Event)
			return r.Line(l)
		},
		End: func(m archive.Member) error {
			if c.model.end(m); m.Name == schemas.MemberKernel {
				return r.Flush()
			}
			return nil
		},
	})
}

func (c *collector) act(a *acts.Act) error {
	if !c.opt.Filter.takes(a) {
		return nil
	}
	c.model.take(a)
	result, _ := endWords(a)
	if a.InDoubt {
		result += ", in doubt"
	}
	c.data.Add(a, c.model.last.index, page.Words{Program: program(a), Op: opWord(a), Names: names(a), Result: result})
	for _, id := range a.ToolCalls {
		c.listed[id] = true
	}
	return nil
}

// line takes a line that is not of the kernel.
func (c *collector) line(event any) {
	switch e := event.(type) {
	case *schemas.FilteredEvent:
		c.data.Pair(&c.data.Filtered, e.Rule, e.Value)
	case *schemas.PolicyEvent:
		c.timeline.Name(schemas.LayerPolicy, e.Seq, e.Decision+" "+e.Tool+" "+e.ToolCallID)
	case *schemas.Intent:
		c.timeline.Name(schemas.LayerIntents, e.Seq, e.IntentType+" "+intentWords(e))
	case *schemas.SDKEvent:
		words := e.EventType
		for _, s := range []*string{e.Tool, e.ToolCallID} {
			if s != nil {
				words += " " + *s
			}
		}
		c.timeline.Name(schemas.LayerSDK, e.Seq, words)
	case *schemas.TimeEvent:
		c.timeline.Take(e, c.data)
	}
}
