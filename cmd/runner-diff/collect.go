package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/cmd/internal/evidence"
	"github.com/runner-evidence/runner/cmd/internal/fold"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// Bounds of what is kept of one side. A comparison beyond them is inconclusive, and says so.
const (
	maxItems     = 1 << 18
	maxItemBytes = 24 << 20
	maxFolded    = 1 << 15 // values whose fold is remembered
)

// run is one archive of a side.
type run struct {
	Archive  string `json:"archive"`
	Digest   string `json:"sha256"`
	Identity string `json:"identity"`
	RunID    string `json:"run_id"`

	Unproven uint64 `json:"unproven"` // operations that nothing shows to have been done
	Failed   uint64 `json:"failed"`   // operations that failed: they are no items
}

// side is one side of the comparison: the items of its runs together.
type side struct {
	items    map[key]*item
	bytes    int
	lost     uint64 // operations on items beyond the bounds
	runs     []run
	lock     *lockFile      // or nil
	covered  map[string]int // in how many runs
	coverage []string       // sorted
	doubts   []doubt
}

// folding is what a fold is asked for.
type folding struct {
	kind  uint8
	value string
}

// collector reads one run into a side.
type collector struct {
	folds  *fold.Set
	to     *side
	run    run
	folded map[folding]string

	pid     uint32 // of the last act
	program string // of that process
	began   string // its program before the act
}

func newSide() *side { return &side{items: map[key]*item{}, covered: map[string]int{}} }

// read opens an archive and adds it to the side.
func (s *side) read(ctx context.Context, env *tool.Env, name string, f *fold.Set) error {
	e, err := evidence.OpenFile(ctx, env, name)
	if err != nil {
		return err
	}
	defer e.Close()
	c := &collector{folds: f, to: s, folded: map[folding]string{},
		run: run{Archive: e.Report.Archive, Digest: e.Digest, Identity: e.Report.Identity, RunID: e.Report.RunID}}
	s.observe(e.Report)
	r := &acts.Reader{Together: e.Report.Record.Origin == schemas.OriginRunner, Notes: e.Report.Record.Notes, Take: c.take}
	err = e.Read(ctx, archive.Visitor{Document: r.Document, SurfaceValue: c.surface,
		Line: func(l *archive.Line) error {
			if p, ok := l.Event.(*schemas.PolicyEvent); ok {
				c.decision(p)
			}
			return r.Line(l)
		},
		End: func(m archive.Member) error {
			if m.Name == schemas.MemberKernel {
				return r.Flush()
			}
			return nil
		}})
	if err != nil {
		return err
	}
	s.runs = append(s.runs, c.run)
	return nil
}

func (c *collector) surface(set int, value []byte) error {
	if set == schemas.SetMCPTools {
		c.add(kindTool, string(value), "", who{}, 0)
	}
	return nil
}

func (c *collector) decision(p *schemas.PolicyEvent) {
	c.add(kindTool, p.Tool, "", who{ToolCall: p.ToolCallID, Count: 1}, 1)
	c.add(kindDecision, p.Tool, p.Decision, who{ToolCall: p.ToolCallID, Count: 1}, 1)
}

// Kinds that this file makes.
var (
	kindExec     = mustKind(schemas.ItemExec)
	kindOut      = mustKind(schemas.ItemEndpointOut)
	kindTried    = mustKind(schemas.ItemEndpointTried)
	kindLocal    = mustKind(schemas.ItemEndpointLocal)
	kindWrite    = mustKind(schemas.ItemWrite)
	kindCreate   = mustKind(schemas.ItemCreate)
	kindDelete   = mustKind(schemas.ItemDelete)
	kindRename   = mustKind(schemas.ItemRename)
	kindMetadata = mustKind(schemas.ItemMetadata)
	kindTool     = mustKind(schemas.ItemTool)
	kindDecision = mustKind(schemas.ItemDecision)
	kindBlocked  = mustKind(schemas.ItemBlocked)
	kindOther    = mustKind(schemas.ItemOther)
	kindRead     = mustKind(schemas.ItemRead)
)

// Words of how.
const (
	howScript = "script"
	howFrom   = "from"
	howTo     = "to"
)

// take makes items of an act.
func (c *collector) take(a *acts.Act) error {
	c.began = ""
	if a.Process.PID == c.pid {
		c.began = c.program
	}
	c.pid, c.program = a.Process.PID, cmp.Or(a.Process.Script, a.Process.Executable)
	switch {
	case a.Outcome == schemas.ActRefused:
		c.act(a, kindBlocked, a.Value(), a.Op)
	case a.Outcome == schemas.ActUnproven:
		c.run.Unproven++
	case a.Outcome == schemas.ActFailed && a.Group == acts.Reached:
		c.act(a, kindTried, a.Value(), protocol(a))
	case a.Outcome == schemas.ActFailed:
		c.run.Failed++
	default:
		c.done(a)
	}
	return nil
}

// done makes items of an act that was done, as far as the record knows.
func (c *collector) done(a *acts.Act) {
	switch a.Group {
	case acts.Executed:
		how := ""
		if a.Op == schemas.OpLoader {
			how = a.Op
		}
		c.act(a, kindExec, a.Path, how)
		if a.Script != "" {
			c.act(a, kindExec, a.Script, howScript)
		}
	case acts.Reached:
		c.act(a, kindOut, a.Endpoint, protocol(a))
	case acts.Bound, acts.Listened:
		c.act(a, kindLocal, a.Endpoint, protocol(a))
	case acts.Wrote:
		c.act(a, kindWrite, a.Path, "")
		if a.Read {
			c.act(a, kindRead, a.Path, "")
		}
	case acts.Created:
		c.created(a)
	case acts.Renamed:
		c.act(a, kindRename, a.Path, howFrom)
		c.act(a, kindRename, a.NewPath, howTo)
	case acts.Removed:
		c.act(a, kindDelete, a.Value(), "")
	case acts.Changed:
		c.act(a, kindMetadata, a.Path, a.Op)
	case acts.Read:
		c.act(a, kindRead, a.Path, "")
	default:
		c.other(a)
	}
}

func (c *collector) created(a *acts.Act) {
	if a.Op == schemas.OpLink {
		c.act(a, kindMetadata, a.Path, a.Op)
		c.act(a, kindCreate, a.NewPath, "")
		return
	}
	c.act(a, kindCreate, a.Path, "")
}

func (c *collector) other(a *acts.Act) {
	c.act(a, kindOther, cmp.Or(a.Path, a.Endpoint, a.Name), a.Op)
	for _, second := range []struct{ value, word string }{{a.NewPath, howTo}, {a.OldPath, howFrom}, {a.Source, howFrom}} {
		if second.value != "" {
			c.act(a, kindOther, second.value, a.Op+" "+second.word)
		}
	}
}

// protocol is what a call says of how an endpoint is used.
func protocol(a *acts.Act) string {
	switch {
	case a.Family == "":
		return a.Op
	case a.Transport != "":
		return a.Family + " " + a.Transport
	}
	return a.Family
}

// act adds an item with who did it.
func (c *collector) act(a *acts.Act, kind uint8, value, how string) {
	if value == "" {
		value = schemas.UnknownRoot
	}
	w := who{Executable: c.program, Count: 1}
	if a.EventType == schemas.EventExec {
		w.Executable = c.began // who executes a program is the one before it
	}
	if len(a.ToolCalls) == 0 {
		c.add(kind, value, how, w, 1)
		return
	}
	count := uint64(1)
	for _, id := range a.ToolCalls {
		w.ToolCall = id
		c.add(kind, value, how, w, count)
		count = 0 // one operation, of several calls
	}
}

// add counts operations on an item.
func (c *collector) add(kind uint8, value, how string, w who, count uint64) {
	if kind != kindTool && kind != kindDecision {
		value = c.fold(kind, value)
	}
	s := c.to
	k := key{kind, value, how}
	i := s.items[k]
	if i == nil {
		if len(s.items) >= maxItems || s.bytes+len(value) > maxItemBytes {
			s.lost++
			return
		}
		i = &item{key: k}
		s.items[k], s.bytes = i, s.bytes+len(value)
	}
	if n := uint32(len(s.runs)) + 1; i.last != n {
		i.in, i.last = i.in+1, n
	}
	i.count += count
	if w.Count > 0 {
		i.by(w)
	}
}

func (c *collector) fold(kind uint8, value string) string {
	f := folding{kind, value}
	v, ok := c.folded[f]
	if ok {
		return v
	}
	if v = c.folds.Value(schemas.CapabilityKinds[kind].Name, value); len(c.folded) == maxFolded {
		clear(c.folded)
	}
	c.folded[f] = v
	return v
}

// sorted are the items in their order.
func (s *side) sorted() []*item {
	list := make([]*item, 0, len(s.items))
	for _, i := range s.items {
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b *item) int { return compareKeys(&a.key, &b.key) })
	return list
}
