package main

import (
	"bytes"
	"errors"
	"io"

	"runner/cmd/internal/tool"
	"runner/cmd/internal/valueset"
	"runner/schemas"
	"runner/schemas/stream"
)

// Options are the command line's choices.
type Options struct {
	Background bool // yield the processor to other processes
}

// joiner is one run of the tool.
type joiner struct {
	in      *stream.Reader
	out     *stream.Writer
	parser  *schemas.KernelParser
	surface *valueset.Set
	entries uint64 // surface entries written
	events  int
	lines   uint64 // kernel lines
	net     schemas.Coverage
	healths [][]byte // stage health lines of the stages before, as they came
	stages  []*schemas.StageHealth
}

func run(env *tool.Env, opt Options) error {
	if opt.Background {
		tool.Background()
	}
	f, name, err := tool.OpenInput(env)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := stream.NewReader(f, name, schemas.StreamNormalized)
	if err != nil {
		return tool.StreamError(err)
	}
	id := in.Header().RunID
	out, err := stream.NewWriter(env.Stdout, stream.Header{Stream: schemas.StreamJoined, RunID: id, Tool: env.Name, Version: tool.Version()})
	if err != nil {
		return failWrite(err)
	}
	j := &joiner{in: in, out: out, parser: schemas.NewKernelParser(id), surface: valueset.New()}
	defer j.surface.Close()
	if err := j.forward(); err != nil {
		return err
	}
	h, err := j.derive()
	if err != nil {
		return err
	}
	env.Infof("%d kernel lines, %d surface entries, kernel_layer=%s", j.lines, j.entries, h.KernelLayer)
	return j.finish(h)
}

func failWrite(err error) error { return tool.Fail(tool.ExitIO, err) }

// forward copies events and kernel lines and keeps the stage healths back. When
// it returns without an error, the input was whole.
func (j *joiner) forward() error {
	var e schemas.KernelEvent
	for {
		rec, err := j.in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return tool.StreamError(err)
		}
		switch rec.Schema {
		case schemas.SchemaKernelEvent:
			if err := j.kernelLine(rec.Bytes, &e); err != nil {
				return err
			}
		case schemas.SchemaEvent:
			if j.lines > 0 || len(j.stages) > 0 {
				return j.refuse("a run event stands behind kernel lines or health, expected it in front")
			}
			j.events++
		case schemas.SchemaStageHealth:
			if err := j.stageHealth(rec.Bytes); err != nil {
				return err
			}
			continue
		default:
			return j.refuse("unknown schema %.80q in a %s stream", rec.Schema, schemas.StreamNormalized)
		}
		if err := j.out.WriteRaw(rec.Bytes); err != nil {
			return failWrite(err)
		}
	}
	return j.balance()
}

func (j *joiner) refuse(format string, a ...any) error {
	return tool.StreamError(j.in.Errorf(format, a...))
}

func (j *joiner) kernelLine(line []byte, e *schemas.KernelEvent) error {
	if len(j.stages) > 0 {
		return j.refuse("a kernel line stands behind the health records")
	}
	if err := j.parser.Parse(line, e); err != nil {
		return j.refuse("kernel line: %v", err)
	}
	if e.Seq != j.lines {
		return j.refuse("kernel line has seq %d, expected %d", e.Seq, j.lines)
	}
	j.lines++
	j.net.Add(e.EventType, e.Value)
	if err := j.surface.Add(schemas.SetOf(e.EventType), e.Value); err != nil {
		return failWrite(err)
	}
	return nil
}

// The stages that write a kernel.normalized stream, in order. Without a kernel
// capture runner-exec stands in for runner-capture.
var sources = [][]string{{"runner-capture", "runner-exec"}, {"runner-normalize"}}

func (j *joiner) stageHealth(line []byte) error {
	h, err := schemas.ParseStageHealth(line)
	if err != nil {
		return j.refuse("%v", err)
	}
	n := len(j.stages)
	if n == len(sources) {
		return j.refuse("stage health of %q, expected no more than %d", h.Stage, n)
	}
	for _, name := range sources[n] {
		if h.Stage == name {
			j.healths = append(j.healths, bytes.Clone(line))
			j.stages = append(j.stages, h)
			return nil
		}
	}
	return j.refuse("stage health of %q, expected %s", h.Stage, sources[n][0])
}

// balance checks that nothing vanished on the way here without being counted.
func (j *joiner) balance() error {
	if j.events != 2 {
		return j.refuse("%d run events, expected run_started and run_finished", j.events)
	}
	if len(j.stages) != len(sources) {
		return j.refuse("%d stage healths, expected %d", len(j.stages), len(sources))
	}
	capture, normalize := &capture{j.stages[0]}, j.stages[1]
	if err := capture.check(); err != nil {
		return j.refuse("stage health: %v", err)
	}
	var filtered uint64
	for _, n := range normalize.Filtered {
		filtered += n
	}
	switch added := normalize.Counters["added"]; {
	case normalize.In != capture.h.Out:
		return j.refuse("%s wrote %d events, %s read %d", capture.h.Stage, capture.h.Out, normalize.Stage, normalize.In)
	case normalize.In+added != normalize.Out+filtered:
		return j.refuse("%s read %d and added %d, but wrote %d and filtered %d", normalize.Stage, normalize.In, added, normalize.Out, filtered)
	case normalize.Out != j.lines:
		return j.refuse("%s wrote %d kernel lines, the stream has %d", normalize.Stage, normalize.Out, j.lines)
	}
	return nil
}

// derive writes what follows from the layers: surface, report and health.
func (j *joiner) derive() (*schemas.Health, error) {
	id := j.in.Header().RunID
	w := newEntryWriter(j.out, id)
	if err := j.surface.Each(w.write); err != nil {
		return nil, failWrite(err)
	}
	j.entries = w.n
	// Without a policy layer there is nothing to bind, and an absent layer does
	// not lower the status.
	report := schemas.Report{Schema: schemas.SchemaReport, RunID: id, Status: schemas.CorrelationClean,
		Bindings: []schemas.Binding{}, Ambiguities: []string{}}
	h := health(id, &capture{j.stages[0]}, j.stages[1], j.lines, j.net)
	if err := errors.Join(j.out.Write(report), j.out.Write(h)); err != nil {
		return nil, failWrite(err)
	}
	return &h, nil
}

// finish writes the stage healths and seals the stream.
func (j *joiner) finish(h *schemas.Health) error {
	for _, line := range j.healths {
		if err := j.out.WriteRaw(line); err != nil {
			return failWrite(err)
		}
	}
	own := schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: h.RunID, Stage: "runner-correlate",
		In: j.lines, Out: j.lines, Filtered: map[string]uint64{},
		Counters: map[string]uint64{"surface_entries": j.entries}, Facts: map[string]string{}, Notes: []string{}}
	if err := j.out.Write(own); err != nil {
		return failWrite(err)
	}
	status := j.in.Trailer().Status
	if h.KernelLayer != schemas.LayerComplete {
		status = schemas.StatusPartial
	}
	if err := j.out.Seal(status); err != nil {
		return failWrite(err)
	}
	return nil
}

// entryWriter writes surface entries without allocating.
type entryWriter struct {
	out    *stream.Writer
	prefix [len(schemas.SurfaceSets)][]byte
	line   []byte
	n      uint64
}

func newEntryWriter(out *stream.Writer, runID string) *entryWriter {
	w := &entryWriter{out: out}
	for i, set := range schemas.SurfaceSets {
		w.prefix[i] = []byte(`{"schema":"` + schemas.SchemaSurfaceEntry + `","run_id":"` + runID + `","set":"` + set + `","value":`)
	}
	return w
}

func (w *entryWriter) write(set int, value []byte) error {
	w.line = append(schemas.AppendQuote(append(w.line[:0], w.prefix[set]...), value), '}')
	w.n++
	return w.out.WriteRaw(w.line)
}
