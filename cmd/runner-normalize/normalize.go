package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/noise"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// Options is what the flags say.
type Options struct {
	Drop          string // gojq program, "" is none
	HasDrop       bool
	CanonicalPIDs bool
	Windows       bool // write times and the process tree
	ShowFiltered  bool
	Noise         string // table of noise rules
	Filtered      bool   // write the layer filtered
	Processes     bool   // write the layer process
	Checksum      string // of the written stream
}

// normalizer is one pass over one raw stream.
type normalizer struct {
	opt      Options
	in       *stream.Reader
	parser   *schemas.RawParser
	noise    *noise.Table
	drop     *dropper
	show     *shower
	left     *leftOut   // nil without the layer filtered
	procs    *processes // nil without the layer process
	tree     tree
	hooks    pendingHooks
	connects connects
	attempt  *attempt // of the event at hand, a connect that has not ended
	store    *store
	mapper   mapper
	shapes   *shapes
	clock    clock
	seqs     sequences

	events     uint64
	byRule     []uint64 // filtered, by place in rules
	filtered   map[string]uint64
	run        [][]byte // run events as they came
	health     []byte   // capture's stage health as it came
	added      uint64
	lexical    uint64
	nullValues uint64
	hookOnly   uint64
	raw        schemas.RawEvent
	kernel     schemas.KernelEvent
	packed     []byte
	lifeErr    error

	unfinished      map[uint32][]unfinished // by task
	unfinishedBytes int
	diverted        *unfinished // takes the lines of the event at hand
	written         uint64      // process records
}

// open opens the input and normalizes it.
func open(ctx context.Context, env *tool.Env, opt Options) error {
	f, name, err := tool.OpenInput(env)
	if err != nil {
		return err
	}
	defer f.Close()
	return normalize(ctx, env, f, name, opt, arenaSize)
}

// normalize reads a kernel.raw stream from r and writes kernel.normalized to
// standard output, with at most arena bytes of lines in memory. Nothing but the
// header is written before the input's trailer was checked, and the seal only
// after everything was.
func normalize(ctx context.Context, env *tool.Env, r io.Reader, name string, opt Options, arena int) error {
	n, err := newNormalizer(env, opt)
	if err != nil {
		return err
	}
	defer n.show.flush()
	defer n.left.close()
	defer n.procs.close()
	if n.drop != nil {
		defer n.drop.program.Close()
	}
	if n.in, err = stream.NewReader(r, name, schemas.StreamRaw); err != nil {
		return tool.StreamError(err)
	}
	n.in.Trust(schemas.SchemaRawEvent) // readRaw parses these strictly
	h := n.in.Header()
	n.parser = schemas.NewRawParser(h.RunID)
	w, err := stream.NewWriter(env.Stdout, stream.Header{
		Stream: schemas.StreamNormalized, RunID: h.RunID, Tool: schemas.StageNormalize, Version: tool.Version(), Checksum: opt.Checksum,
	})
	if err != nil {
		return writeError(err)
	}
	n.store = newStore(arena)
	defer n.store.close()
	if err := n.readAll(ctx); err != nil {
		return err
	}
	if err := n.writeAll(ctx, w); err != nil {
		return err
	}
	health := n.stageHealth(h.RunID)
	n.show.summary(health.Filtered, health.In)
	env.Infof("%d events in, %d lines out, %d tasks in %d processes", health.In, health.Out, n.tree.n, n.tree.processes)
	if err := conserved(health); err != nil {
		return err
	}
	if err := w.Write(health); err != nil {
		return writeError(err)
	}
	if err := w.Seal(n.in.Trailer().Status); err != nil {
		return writeError(err)
	}
	return nil
}

func newNormalizer(env *tool.Env, opt Options) (*normalizer, error) {
	n := &normalizer{
		opt: opt, shapes: newShapes(), filtered: map[string]uint64{},
	}
	table, err := noise.New(cmp.Or(opt.Noise, schemas.NoiseV0))
	if err != nil {
		return nil, err
	}
	n.noise, n.byRule = table, make([]uint64, table.Len())
	if opt.Filtered {
		if n.left, err = newLeftOut(table); err != nil {
			return nil, err
		}
	}
	if opt.Processes {
		n.procs = newProcesses()
	}
	if opt.HasDrop {
		if n.drop, err = compileDrop(opt.Drop); err != nil {
			return nil, err
		}
	}
	if opt.Windows {
		n.tree.life = n.noteLife
	}
	if opt.ShowFiltered {
		n.show = newShower(env.Stderr, env.Name)
	}
	return n, nil
}

func writeError(err error) error {
	return tool.Fail(tool.ExitIO, fmt.Errorf("writing the normalized stream: %w", err))
}

// readAll reads to the checked end of the input.
func (n *normalizer) readAll(ctx context.Context) error {
	for {
		rec, err := n.in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return tool.StreamError(err)
		}
		if n.health != nil {
			return tool.StreamError(n.in.Errorf("a record after the stage health"))
		}
		switch rec.Schema {
		case schemas.SchemaRawEvent:
			err = n.readRaw(rec.Bytes)
		case schemas.SchemaEvent:
			err = n.readRun(rec.Bytes)
		case schemas.SchemaStageHealth:
			err = n.readHealth(rec)
		default:
			err = tool.StreamError(n.in.Errorf("unknown schema %.80q", rec.Schema))
		}
		if err != nil {
			return err
		}
		if n.events&0xffff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if n.health == nil {
		return tool.StreamError(n.in.Errorf("no stage health of the capture"))
	}
	if len(n.run) != len(runEvents) {
		return tool.StreamError(n.in.Errorf("%d run events, expected run_started and run_finished", len(n.run)))
	}
	if err := n.flushHeld(); err != nil {
		return err
	}
	return n.flushUnfinished()
}

func (n *normalizer) readRaw(line []byte) error {
	e := &n.raw
	if err := n.parser.Parse(line, e); err != nil {
		return tool.StreamError(n.in.Errorf("%v", err))
	}
	if e.Seq != n.events {
		return tool.StreamError(n.in.Errorf("seq %d, expected %d", e.Seq, n.events))
	}
	if err := n.seqs.add(e); err != nil {
		return tool.StreamError(n.in.Errorf("%v", err))
	}
	n.events++
	if err := n.event(e); err != nil {
		return err
	}
	return n.lifeErr
}

var runEvents = [...]string{schemas.TypeRunStarted, schemas.TypeRunFinished}

// readRun keeps a run event: run_started, then run_finished.
func (n *normalizer) readRun(line []byte) error {
	var err error
	var kind string
	if len(n.run) == 0 {
		var v schemas.RunStarted
		err = schemas.Unmarshal(line, &v)
		kind = v.Type
	} else {
		var v schemas.RunFinished
		err = schemas.Unmarshal(line, &v)
		kind = v.Type
	}
	switch {
	case len(n.run) == len(runEvents):
		return tool.StreamError(n.in.Errorf("a third run event, expected run_started and run_finished only"))
	case err != nil:
		return tool.StreamError(n.in.Errorf("bad run event, expected %s: %v", runEvents[len(n.run)], err))
	case kind != runEvents[len(n.run)]:
		return tool.StreamError(n.in.Errorf("run event %.40q, expected %s", kind, runEvents[len(n.run)]))
	}
	n.run = append(n.run, append([]byte(nil), line...))
	return nil
}

func (n *normalizer) readHealth(rec stream.Record) error {
	var h schemas.StageHealth
	if err := schemas.Unmarshal(rec.Bytes, &h); err != nil {
		return tool.StreamError(n.in.Errorf("bad stage health: %v", err))
	}
	if h.Facts[schemas.FactKernelCapture] == "" {
		return tool.StreamError(n.in.Errorf("stage health of %.40q, expected the capture's, with the fact %s", h.Stage, schemas.FactKernelCapture))
	}
	if h.Out != n.events {
		return tool.StreamError(n.in.Errorf("the capture wrote %d events, read %d", h.Out, n.events))
	}
	if err := n.seqs.check(&h); err != nil {
		return tool.StreamError(n.in.Errorf("%v", err))
	}
	if n.procs != nil {
		if err := n.procs.settle(&h); err != nil {
			return err
		}
	}
	n.health = append([]byte{}, rec.Bytes...)
	return nil
}

// writeAll writes the records up to the capture's stage health.
func (n *normalizer) writeAll(ctx context.Context, w *stream.Writer) error {
	for _, line := range n.run {
		if err := w.WriteRaw(line); err != nil {
			return writeError(err)
		}
	}
	if err := n.left.write(w, n.in.Header().RunID); err != nil {
		return writeError(err)
	}
	n.tree.stopGrowing()
	order := n.tree.rank()
	if n.lifeErr != nil {
		return n.lifeErr
	}
	if err := n.procs.ordered(order); err != nil {
		return err
	}
	if err := n.rekey(order); err != nil {
		return err
	}
	if err := n.writeLines(ctx, n.newLineWriter(w, order)); err != nil {
		return err
	}
	if err := n.procs.write(w, n.in.Header().RunID, order); err != nil {
		return writeError(err)
	}
	if err := w.WriteRaw(n.health); err != nil {
		return writeError(err)
	}
	return nil
}

// rekey puts what is stored into canonical order: the keys of tasks become those of
// their places.
func (n *normalizer) rekey(order *order) error {
	err := n.store.rekey(func(key uint32) uint32 {
		if n.opt.Windows {
			return windowKey(order.place[key/2], isLife(key))
		}
		return order.place[key]
	})
	order.place = nil
	return err
}

func (n *normalizer) newLineWriter(w *stream.Writer, order *order) *lineWriter {
	id := n.in.Header().RunID
	out := &lineWriter{
		w: w, shapes: n.shapes, drop: n.drop, show: n.show, runID: id, start: schemas.AppendKernelStart(nil, id),
		canonical: n.opt.CanonicalPIDs, results: n.connects.results, order: order, procs: n.procs, block: w.Buffer(),
	}
	out.from = len(out.block)
	if n.opt.Windows {
		out.times = &n.clock
		out.tree = &treeWriter{order: order, times: &n.clock}
	}
	return out
}

func (n *normalizer) writeLines(ctx context.Context, out *lineWriter) error {
	err := n.store.each(func(key uint32, packed []byte) error {
		if out.tree == nil {
			return out.write(ctx, key, packed)
		}
		if isLife(key) {
			out.life(key/2, packed)
			return nil
		}
		return out.write(ctx, key/2, packed)
	})
	if err != nil {
		return err
	}
	if out.tree != nil {
		n.written = out.tree.n
	}
	return out.flush()
}
