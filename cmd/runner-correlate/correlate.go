package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/runner-evidence/runner/cmd/internal/health"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/valueset"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// Options are the settings of the command line.
type Options struct {
	Background bool              // yield the processor to other processes
	Logs       map[string]string // name of a layer → file of its log
	Times      bool              // write the layer times
	Checksum   string            // of the written stream
	Record     string            // directory with the records of wrappers, or ""
}

// joiner is one run of the tool.
type joiner struct {
	in      *stream.Reader
	out     *stream.Writer
	parser  *schemas.KernelParser
	surface *valueset.AsyncWriter
	entries uint64 // surface entries written
	events  int
	lines   uint64 // kernel lines
	net     schemas.Coverage
	healths [][]byte // stage health lines of the earlier stages, unchanged
	stages  []*schemas.StageHealth

	logs        []logLayer   // the layers whose logs were given, in the table's order
	policy      *policyLog   // one of them, nil when there is no such log
	sdk         *sdkLog      // the same
	attribution *attribution // nil without a policy log
	tree        *tree        // nil before the first process
	times       times        // whether the lines have times
	timing      *timing      // nil without --times
	filtered    filtered
	processes   processes
	records     records
	wrote       int // how many of logs have written their lines
}

func run(env *tool.Env, opt Options) error {
	if opt.Background {
		tool.Background()
	}
	go prepare()
	f, name, err := tool.OpenInput(env)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := stream.NewReadAhead(f, name, schemas.StreamNormalized)
	if err != nil {
		return tool.StreamError(err)
	}
	defer in.Close()
	in.Trust(schemas.SchemaKernelEvent) // kernelLine parses these strictly
	id := in.Header().RunID
	out, err := stream.NewAsyncWriter(env.Stdout, stream.Header{Stream: schemas.StreamJoined, RunID: id, Tool: env.Name, Version: tool.Version(), Checksum: opt.Checksum})
	if err != nil {
		return failWrite(err)
	}
	defer out.Close()
	j := &joiner{in: in, out: out, parser: schemas.NewKernelParser(id), surface: valueset.NewAsyncWriter()}
	defer j.surface.Close()
	j.records.dir = opt.Record
	if opt.Times {
		if j.timing, err = newTiming(); err != nil {
			return failWrite(err)
		}
		defer j.timing.close()
	}
	h, err := j.readAndDerive(opt)
	if err != nil {
		return j.firstError(err)
	}
	env.Infof("%d kernel lines, %d surface entries, kernel_layer=%s", j.lines, j.entries, h.KernelLayer)
	return j.finish(h)
}

func (j *joiner) readAndDerive(opt Options) (*schemas.Health, error) {
	if err := j.readLogs(opt); err != nil {
		return nil, err
	}
	if err := j.forward(); err != nil {
		return nil, err
	}
	if err := j.readRecords(); err != nil {
		return nil, err
	}
	return j.derive()
}

// firstError returns the error to report when err was found. Goroutines write and
// collect values while later lines are read, so an error of theirs came before err.
func (j *joiner) firstError(err error) error {
	if e := j.out.Close(); e != nil {
		return failWrite(e)
	}
	if e := j.surface.Wait(); e != nil {
		return failWrite(e)
	}
	return err
}

func failWrite(err error) error { return tool.Fail(tool.ExitIO, err) }

// forward copies events and kernel lines, and keeps the stage healths for the end.
// When it returns without an error, the input was whole.
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
		if j.events == 2 && rec.Schema != schemas.SchemaEvent && !j.records.begun {
			if err := j.writeEarly(); err != nil {
				return err
			}
		}
		line, end := rec.Bytes, ""
		switch rec.Schema {
		case schemas.SchemaKernelEvent:
			if line, end, err = j.kernelLine(line, &e); err != nil {
				return err
			}
		case schemas.SchemaFiltered:
			if err := j.filteredLine(line); err != nil {
				return err
			}
		case schemas.SchemaProcessEvent:
			if err := j.processLine(line); err != nil {
				return err
			}
		case schemas.SchemaProcess:
			if err := j.process(line); err != nil {
				return err
			}
			continue
		case schemas.SchemaEvent:
			if j.lines > 0 || len(j.stages) > 0 {
				return j.refuse("a run event follows kernel lines or health, expected it before them")
			}
			j.events++
			if err := j.checkLogs(line); err != nil {
				return err
			}
		case schemas.SchemaStageHealth:
			if err := j.stageHealth(rec.Bytes); err != nil {
				return err
			}
			continue
		default:
			return j.refuse("unknown schema %.80q in a %s stream", rec.Schema, schemas.StreamNormalized)
		}
		if err := j.out.Forward(line, end); err != nil {
			return failWrite(err)
		}
	}
	return j.balance()
}

// checkLogs compares the logs that were given with those that the run collected. One that was
// collected and not given would read like one that never was, and so would one of which a full
// disk left an empty file; an SDK log cannot be of a run that set up no shim.
func (j *joiner) checkLogs(line []byte) error {
	if j.events > 1 {
		return nil
	}
	e, err := schemas.ParseEvent(line)
	if err != nil {
		return j.refuse("%v", err)
	}
	if e.Started == nil {
		return nil
	}
	for _, l := range schemas.LogLayers() {
		if !slices.Contains(e.Started.EnvKeys, l.Log.Env) {
			continue
		}
		hint := fmt.Sprintf("runner-correlate --%s FILE, with the file that runner-exec --%s-log wrote", l.Name, l.Name)
		switch given := slices.IndexFunc(j.logs, func(g logLayer) bool { return g.Name == l.Name }); {
		case given < 0:
			return tool.Fail(tool.ExitUsage, j.in.Errorf("the run collected a %s, which is not given", l.Log.Title), hint)
		case j.logs[given].empty:
			return tool.Fail(tool.ExitInput, j.in.Errorf("the run collected a %s, and what is given has no bytes: a log to which nobody wrote is a sealed stream, too", l.Log.Title), hint)
		}
	}
	if j.sdk != nil && e.Started.AgentShim == schemas.ShimNone {
		return j.refuse("the run has agent_shim none, so no SDK log belongs to it; leave --sdk out, or measure with runner-exec --agent-shim openai-agents")
	}
	return nil
}

func (j *joiner) refuse(format string, a ...any) error {
	return tool.StreamError(j.in.Errorf(format, a...))
}

// kernelLine takes in one kernel line. It returns the line as it is forwarded, without
// its time, in two parts.
func (j *joiner) kernelLine(line []byte, e *schemas.KernelEvent) (start []byte, end string, err error) {
	if len(j.stages) > 0 || j.processes.written > 0 {
		return nil, "", j.refuse("a kernel line follows the health records, or the layer %s", schemas.LayerProcess)
	}
	when, err := j.parser.ParseTimed(line, e)
	if err != nil {
		return nil, "", j.refuse("kernel line: %v", err)
	}
	if err := j.sameTimes(when); err != nil {
		return nil, "", err
	}
	if e.Seq != j.lines {
		return nil, "", j.refuse("kernel line has seq %d, expected %d", e.Seq, j.lines)
	}
	if j.lines == 0 {
		if err := j.writeLayers(schemas.LayerKernel); err != nil {
			return nil, "", failWrite(err)
		}
	}
	j.lines++
	j.net.Add(e.EventType, e.Value)
	if j.records.dir != "" {
		j.records.connects.Add(e)
	}
	if err := j.surface.Add(schemas.SetOf(e.EventType), e.Value); err != nil {
		return nil, "", failWrite(err)
	}
	if j.timing != nil {
		if err := j.timing.kernelLine(when.NS); err != nil {
			return nil, "", failWrite(err)
		}
	}
	if j.times == timed {
		return when.Without(line), "}", j.attribute(e, when.NS)
	}
	return line, "", nil
}

func (j *joiner) stageHealth(line []byte) error {
	h, err := schemas.ParseStageHealth(line)
	if err != nil {
		return j.refuse("%v", err)
	}
	n := len(j.stages)
	if n == len(health.Sources) {
		return j.refuse("stage health of %q, expected no more than %d", h.Stage, n)
	}
	for _, name := range health.Sources[n] {
		if h.Stage == name {
			j.healths = append(j.healths, bytes.Clone(line))
			j.stages = append(j.stages, h)
			return nil
		}
	}
	return j.refuse("stage health of %q, expected %s", h.Stage, health.Sources[n][0])
}

// balance checks that nothing was lost between the stages without being counted.
func (j *joiner) balance() error {
	if j.events != 2 {
		return j.refuse("%d run events, expected run_started and run_finished", j.events)
	}
	if len(j.stages) != len(health.Sources) {
		return j.refuse("%d stage healths, expected %d", len(j.stages), len(health.Sources))
	}
	if err := j.balanceTimes(j.stages[1]); err != nil {
		return err
	}
	if err := j.readStart(); err != nil {
		return err
	}
	if err := j.balanceFiltered(); err != nil {
		return err
	}
	if err := j.balanceProcesses(); err != nil {
		return err
	}
	if err := health.Flow(j.capture(), j.stages[1], j.lines); err != nil {
		return j.refuse("%v", err)
	}
	return nil
}

// capture is the health of the first stage.
func (j *joiner) capture() *health.Capture { return &health.Capture{Health: j.stages[0]} }

// derive writes the layers from logs and what follows from all layers: surface, report
// and health.
func (j *joiner) derive() (*schemas.Health, error) {
	id := j.in.Header().RunID
	h := health.Derive(id, j.capture(), j.stages[1], j.lines, j.net.Fields)
	report := j.report(h.KernelLayer, h.CgroupCorrelation)
	j.addLayers(&h)
	if err := errors.Join(j.writeLayers(""), j.writeTimes(), j.writeDocuments(), j.writeSurface(), j.writeReport(report), j.out.Write(h)); err != nil {
		return nil, failWrite(err)
	}
	return &h, nil
}

func (j *joiner) writeSurface() error {
	w := newEntryWriter(j.out, j.in.Header().RunID)
	err := j.surface.Each(w.write)
	j.entries = w.n
	return err
}

// finish writes the stage healths and the trailer of the stream.
func (j *joiner) finish(h *schemas.Health) error {
	for _, line := range j.healths {
		if err := j.out.WriteRaw(line); err != nil {
			return failWrite(err)
		}
	}
	own := schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: h.RunID, Stage: schemas.StageCorrelate,
		In: j.lines, Out: j.lines, Filtered: map[string]uint64{},
		Counters: map[string]uint64{schemas.CounterSurfaceEntries: j.entries}, Facts: map[string]string{}, Notes: []string{}}
	j.addCounters(own.Counters)
	if err := j.out.Write(own); err != nil {
		return failWrite(err)
	}
	status := j.sealStatus()
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
	for i := range schemas.SurfaceSets {
		w.prefix[i] = schemas.SurfaceEntryPrefix(runID, i)
	}
	return w
}

func (w *entryWriter) write(set int, value []byte) error {
	w.line = schemas.AppendQuote(append(w.line[:0], w.prefix[set]...), value)
	w.n++
	return w.out.Forward(w.line, "}") // an LF is quoted
}
