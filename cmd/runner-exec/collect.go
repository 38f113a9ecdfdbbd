package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// collects are the layers whose logs are collected, in the order of the layer table.
func (o *Options) collects() (list []schemas.Layer) {
	for _, l := range schemas.LogLayers() {
		if o.Collect[l.Name] {
			list = append(list, l)
		}
	}
	return list
}

// envKeys are the names of the variables that are set for the command, sorted.
func (o *Options) envKeys() []string {
	keys := []string{}
	for _, l := range o.collects() {
		keys = append(keys, l.Log.Env)
		if l.Log.SchemaEnv != "" {
			keys = append(keys, l.Log.SchemaEnv)
		}
	}
	if len(keys) > 0 {
		keys = append(keys, schemas.EnvRunID)
	}
	slices.Sort(keys)
	return keys
}

// collected is one log of the run.
type collected struct {
	schemas.Layer
	facts map[string]string // additional facts for the log's health
	path  string
	collector
	sinks []io.Writer // the writers that get the stream
	pipe  *os.File    // the sink that is runner-correlate's input, or nil
}

// collector is the platform's part: it reads the log while the command runs.
type collector interface {
	// mark notes that the command has ended.
	mark()
	// finish returns the log when it is complete: once over is closed, or, if silent is
	// set, as soon as no process has the log open.
	finish(over <-chan struct{}, silent bool) (*lineLog, logFacts, error)
	// close stops reading and releases everything.
	close()
}

// logFacts is what is known about a log in addition to its lines.
type logFacts struct {
	afterEnd uint64 // bytes that came after the command's end
	replaced bool
	writers  string // at the command's end: none, open, unknown
}

// logs are all collected logs of a run.
type logs struct {
	opt       Options
	all       []*collected
	dir       *logDir
	broken    chan error    // a log that cannot be stored ends the run
	over      chan struct{} // closed when no process can write any more, or the wait for it has ended
	endWait   func()        // closes over
	once      sync.Once
	finishing bool          // finish was called
	done      chan struct{} // after finish: closed when all streams are written or abandoned
	mu        sync.Mutex
	left      bool // abandon was called
}

// newLogs makes the logs that o asks for; nil if there are none.
func newLogs(o Options) (*logs, error) {
	layers := o.collects()
	if len(layers) == 0 {
		return nil, nil
	}
	l := &logs{opt: o, broken: make(chan error, 2*len(layers)), over: make(chan struct{}), done: make(chan struct{})}
	l.endWait = sync.OnceFunc(func() { close(l.over) })
	var err error
	if l.dir, err = makeLogDir(o, layers); err != nil {
		return nil, err
	}
	for _, k := range layers {
		path, in, err := l.dir.collect(k.Name, l.broken)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("collecting the %s log: %w", k.Name, err)
		}
		c := &collected{Layer: k, path: path, collector: in}
		if k.Name == schemas.LayerPolicy && o.PolicyDigest != "" {
			c.facts = map[string]string{schemas.FactPolicyDigest: o.PolicyDigest}
		}
		l.all = append(l.all, c)
	}
	return l, nil
}

// route decides where the logs' streams go: to the files of out and, with joined, to
// runner-correlate. It returns the ends of the pipes that runner-correlate reads, in the
// order of the logs.
func (l *logs) route(out *outputs, stdout io.Writer, joined bool) (ends []*os.File, err error) {
	if l == nil {
		return nil, nil
	}
	for _, c := range l.all {
		for _, f := range out.logs[c.Name] {
			c.sinks = append(c.sinks, f)
		}
		if l.opt.LogFiles[c.Name] == "-" {
			c.sinks = append(c.sinks, stdout)
		}
		if !joined {
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			return ends, fmt.Errorf("making a pipe: %w", err)
		}
		child.WidenPipe(w)
		ends, c.pipe = append(ends, r), w
		c.sinks = append(c.sinks, w)
	}
	return ends, nil
}

// environment returns env with the variables of the logs. Variables of the runner that
// this run does not set belong to an outer run, and are removed. env may have a name
// twice, and entries that are not assignments; these are kept.
func (l *logs) environment(env []string) []string {
	out := make([]string, 0, len(env)+4)
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); !slices.Contains(schemas.EnvKeys(), name) {
			out = append(out, e)
		}
	}
	if l == nil {
		return out
	}
	for _, c := range l.all {
		out = append(out, c.Log.Env+"="+c.path)
		if c.Log.SchemaEnv != "" {
			out = append(out, c.Log.SchemaEnv+"="+c.Schema)
		}
	}
	return append(out, schemas.EnvRunID+"="+l.opt.RunID)
}

// reachable are the rules under which the command can write to its logs.
func (l *logs) reachable(rules *schemas.FileRules) (*schemas.FileRules, error) {
	if l == nil || rules == nil {
		return rules, nil
	}
	var paths []string
	for _, c := range l.all {
		path, err := filepath.EvalSymlinks(c.path)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return rules.AllowLogs(paths), nil
}

// brokenLog receives the error of a log that can no longer be stored.
func (l *logs) brokenLog() <-chan error {
	if l == nil {
		return nil
	}
	return l.broken
}

// mark notes that the command has ended.
func (l *logs) mark() {
	if l == nil {
		return
	}
	for _, c := range l.all {
		c.mark()
	}
}

// finish completes all logs and writes their streams, in the background, because the
// stages read them at the same time. The logs are complete when empty returns. If empty
// is nil, they are complete when no process has one open, or after grace.
func (l *logs) finish(p *pipeline, empty func() error, grace time.Duration) {
	if l == nil {
		return
	}
	l.finishing = true
	if empty != nil {
		go func() {
			if err := empty(); err != nil {
				p.fail(err)
				l.abandon()
			}
			l.endWait()
		}()
	} else {
		time.AfterFunc(grace, l.endWait)
	}
	var all sync.WaitGroup
	for _, c := range l.all {
		all.Go(func() {
			defer c.hangUp()
			in, facts, err := c.finish(l.over, empty == nil)
			if l.abandoned() {
				return
			}
			if err == nil {
				err = c.write(l.opt.RunID, in, facts)
			}
			if err != nil && !l.abandoned() && !errors.Is(err, syscall.EPIPE) { // after EPIPE, runner-correlate reports the reason
				p.fail(fmt.Errorf("the %s log: %w", c.Name, err))
			}
		})
	}
	go func() {
		all.Wait()
		close(l.done)
	}()
}

// written is closed when all logs are written.
func (l *logs) written() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.done
}

// stopWaiting ends the wait for writers.
func (l *logs) stopWaiting() {
	if l != nil {
		l.endWait()
	}
}

// abandon notes that there will be no record. runner-correlate sees an input that ends
// without a seal.
func (l *logs) abandon() {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.left = true
	l.mu.Unlock()
	l.endWait()
	for _, c := range l.all {
		c.hangUp()
	}
}

func (l *logs) abandoned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

// close removes the FIFOs and their directory. The error names what it could not remove.
func (l *logs) close() (err error) {
	if l == nil {
		return nil
	}
	l.once.Do(func() {
		l.abandon()
		if l.finishing {
			<-l.done
		}
		for _, c := range l.all {
			c.collector.close()
		}
		err = l.dir.remove()
	})
	return err
}

func (c *collected) hangUp() {
	if c.pipe != nil {
		c.pipe.Close()
	}
}

// write writes the collected stream to all its sinks.
func (c *collected) write(runID string, in *lineLog, f logFacts) error {
	w, err := stream.NewWriter(io.MultiWriter(c.sinks...), stream.Header{
		Stream: c.Log.Stream, RunID: runID, Tool: schemas.StageExec, Version: tool.Version()})
	if err != nil {
		return err
	}
	n, err := in.records(w, runID)
	if err != nil {
		return err
	}
	if err := w.Write(logHealth(runID, n, in, f, c.facts)); err != nil {
		return err
	}
	status := schemas.StatusComplete
	if in.stopped != "" || f.replaced {
		status = schemas.StatusPartial // some lines of the run are missing
	}
	return w.Seal(status)
}

func logHealth(runID string, lines uint64, in *lineLog, f logFacts, more map[string]string) schemas.StageHealth {
	yes := map[bool]string{true: schemas.Yes, false: schemas.No}
	h := schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: runID, Stage: schemas.StageExec,
		In: lines, Out: lines, Filtered: map[string]uint64{}, Notes: []string{},
		Counters: map[string]uint64{
			schemas.CounterAfterEndBytes: f.afterEnd, schemas.CounterBytes: in.total,
			schemas.CounterDroppedBytes: in.total - in.kept(), schemas.CounterLines: lines,
		},
		Facts: map[string]string{
			schemas.FactReplaced: yes[f.replaced], schemas.FactStopped: in.stopped,
			schemas.FactUnterminated: yes[in.partial > 0], schemas.FactWritersAtEnd: f.writers,
		}}
	maps.Copy(h.Facts, more)
	return h
}
