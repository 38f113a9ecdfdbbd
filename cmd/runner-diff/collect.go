package main

import (
	"cmp"
	"context"
	"errors"

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
	items    items
	bytes    int // of the names in items and actors
	actors   map[actor]*actor
	lost     uint64 // operations on items beyond the bounds
	runs     []run
	lock     *lockFile      // or nil
	covered  map[string]int // in how many runs
	coverage []string       // sorted
	doubts   []doubt
}

// collector reads one run into a side.
type collector struct {
	folds *fold.Set
	to    *side
	run   run

	pid     uint32 // of the last act
	program string // of that process
	began   string // its program before the act
}

func newSide() *side { return &side{actors: map[actor]*actor{}, covered: map[string]int{}} }

// errContract says that an archive was read as this runner's, and is of another implementation.
var errContract = errors.New("not this runner's archive")

// read opens an archive and adds it to the side. Ahead, it reads while runner-verify judges, as if the archive were
// this runner's.
func (s *side) read(ctx context.Context, env *tool.Env, name string, f *fold.Set, ahead bool) error {
	e, err := evidence.BeginFile(ctx, env, name)
	if err != nil {
		return err
	}
	defer e.Close()
	if !ahead {
		if err := e.Judged(); err != nil {
			return err
		}
	}
	c := &collector{folds: f, to: s}
	r := &acts.Reader{Together: ahead || e.Report.Record.Origin == schemas.OriginRunner, Take: c.take}
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
	if r.Together && e.Report.Record.Origin != schemas.OriginRunner {
		return errContract
	}
	c.run.Archive, c.run.Digest, c.run.Identity, c.run.RunID = e.Report.Archive, e.Digest, e.Report.Identity, e.Report.RunID
	s.observe(e.Report)
	s.runs = append(s.runs, c.run)
	return nil
}

func (c *collector) surface(set int, value []byte) error {
	if set == schemas.SetMCPTools {
		c.add(kindTool, string(value), "", actor{}, 0, 0)
	}
	return nil
}

func (c *collector) decision(p *schemas.PolicyEvent) {
	c.add(kindTool, p.Tool, "", actor{ToolCall: p.ToolCallID}, 1, 1)
	c.add(kindDecision, p.Tool, p.Decision, actor{ToolCall: p.ToolCallID}, 1, 1)
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
	w := actor{Executable: c.program}
	if a.EventType == schemas.EventExec {
		w.Executable = c.began // who executes a program is the one before it
	}
	if len(a.ToolCalls) == 0 {
		c.add(kind, value, how, w, 1, 1)
		return
	}
	count := uint64(1)
	for _, id := range a.ToolCalls {
		w.ToolCall = id
		c.add(kind, value, how, w, count, 1)
		count = 0 // one operation, of several calls
	}
}

// add counts operations on an item, and how many of them an actor did.
func (c *collector) add(kind uint8, value, how string, w actor, count, own uint64) {
	if kind != kindTool && kind != kindDecision {
		value = c.folds.Value(schemas.CapabilityKinds[kind].Name, value)
	}
	s := c.to
	k := key{kind, value, how}
	i := s.items.get(k)
	if i == nil {
		if s.items.count >= maxItems || !s.room(len(value)+len(how)) {
			s.lost++
			return
		}
		i = s.items.add(k)
	}
	if n := uint32(len(s.runs)) + 1; i.last != n {
		i.in, i.last = i.in+1, n
	}
	i.count += count
	if own == 0 {
		return
	}
	by := s.actor(w)
	if by == nil {
		s.lost++
		return
	}
	if i.who == nil {
		s.items.first(i)
	}
	i.by(tally{by, own})
}

// room takes room for a name; false if there is none left.
func (s *side) room(size int) bool {
	if s.bytes+size > maxItemBytes {
		return false
	}
	s.bytes += size
	return true
}

// actor is the one of this side that is equal; nil if there is no room for it.
func (s *side) actor(w actor) *actor {
	a := s.actors[w]
	if a == nil && s.room(len(w.Executable)+len(w.ToolCall)) {
		own := w // so that w itself stays off the heap
		a = &own
		s.actors[w] = a
	}
	return a
}
