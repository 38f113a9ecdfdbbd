package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
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

// collects are the layers whose logs the command is given, in the table's order.
func (o *Options) collects() (list []schemas.Layer) {
	for _, l := range schemas.LogLayers() {
		if o.Collect[l.Name] {
			list = append(list, l)
		}
	}
	return list
}

// envKeys are the names that the command is given, sorted.
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
	facts map[string]string // what else the log's health says
	path  string
	collector
	sinks []io.Writer // where the stream goes
	pipe  *os.File    // the one of them that leads to runner-correlate, or nil
}

// collector is the platform's part: it reads the log while the command runs.
type collector interface {
	// mark says that the command has ended.
	mark()
	// finish returns when the log is complete: once over is closed, or, if silent is
	// set, as soon as nobody has the log open. It returns what was found out.
	finish(over <-chan struct{}, silent bool) (*lineLog, logFacts, error)
	// close ends everything at once.
	close()
}

// logFacts is what is known of a log in addition to its lines.
type logFacts struct {
	afterEnd uint64 // bytes that came after the command's end
	replaced bool
	writers  string // at the command's end: none, open, unknown
}

// logs are all collected logs of a run.
type logs struct {
	opt    Options
	all    []*collected
	dir    *logDir
	broken chan error    // a log that cannot be kept ends the run
	over   chan struct{} // closed when nobody can write any more, or nothing is waited for
	cut    func()        // closes over
	once   sync.Once
	going  bool          // finish was called
	done   chan struct{} // closed then, when all streams are written or given up
	left   bool          // given up
	mu     sync.Mutex
}

// newLogs makes the logs that o asks for; nil if there are none.
func newLogs(o Options) (*logs, error) {
	layers := o.collects()
	if len(layers) == 0 {
		return nil, nil
	}
	l := &logs{opt: o, broken: make(chan error, 2*len(layers)), over: make(chan struct{}), done: make(chan struct{})}
	l.cut = sync.OnceFunc(func() { close(l.over) })
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
// runner-correlate. The result are the ends to read from, in the order of the logs.
func (l *logs) route(out *outputs, joined bool) (ends []*os.File, err error) {
	if l == nil {
		return nil, nil
	}
	for _, c := range l.all {
		for _, f := range out.logs[c.Name] {
			c.sinks = append(c.sinks, f)
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

// environment is env with what the command has to know. What a variable says that is
// not in use is about another run, and is taken out. env may have a name twice, or
// entries that are no assignments; they stay.
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

// brokenLog reports a log that cannot be kept any more.
func (l *logs) brokenLog() <-chan error {
	if l == nil {
		return nil
	}
	return l.broken
}

// mark says that the command has ended.
func (l *logs) mark() {
	if l == nil {
		return
	}
	for _, c := range l.all {
		c.mark()
	}
}

// finish completes all logs and writes their streams, in the background: the
// pipeline reads them while it finishes its part. With empty, the run is over when
// that returns; without, when nobody has a log open or after grace.
func (l *logs) finish(p *pipeline, empty func() error, grace time.Duration) {
	if l == nil {
		return
	}
	l.going = true
	if empty != nil {
		go func() {
			if err := empty(); err != nil {
				p.fail(err)
				l.abandon()
			}
			l.cut()
		}()
	} else {
		time.AfterFunc(grace, l.cut)
	}
	var all sync.WaitGroup
	for _, c := range l.all {
		all.Go(func() {
			defer c.hangUp()
			in, facts, err := c.finish(l.over, empty == nil)
			if l.given() {
				return
			}
			if err == nil {
				err = c.write(l.opt.RunID, in, facts)
			}
			if err != nil && !l.given() && !errors.Is(err, syscall.EPIPE) { // else runner-correlate says why
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
		l.cut()
	}
}

// abandon says that there will be no record. runner-correlate sees the end of an
// input without a seal.
func (l *logs) abandon() {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.left = true
	l.mu.Unlock()
	l.cut()
	for _, c := range l.all {
		c.hangUp()
	}
}

func (l *logs) given() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

// close leaves nothing of the logs behind, or says what.
func (l *logs) close() (err error) {
	if l == nil {
		return nil
	}
	l.once.Do(func() {
		l.abandon()
		if l.going {
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
		status = schemas.StatusPartial // lines of the run are not in it
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
