package main

import (
	"context"
	"errors"
	"sync"

	"github.com/runner-evidence/runner/cmd/internal/evidence"
	"github.com/runner-evidence/runner/cmd/internal/otlp"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// outputs are the files and the endpoint.
type outputs struct {
	traces, logs *output
	report       *tool.AtomicFile
	sent         *sent // nil: nothing is sent
}

// output takes the requests of one signal. They are written and sent beside the reading of the archive.
type output struct {
	signal  otlp.Signal
	name    string
	file    *tool.AtomicFile // or nil
	sent    *sent            // or nil
	todo    chan []byte
	free    chan []byte
	ended   sync.WaitGroup
	mu      sync.Mutex
	err     error
	stopped bool
}

// queued is how many requests wait for the writer.
const queued = 2

func newOutputs(ctx context.Context, env *tool.Env, e *evidence.Evidence, opt Options) (*outputs, error) {
	o := &outputs{}
	var err error
	if opt.Client != nil {
		if o.sent, err = newSent(ctx, e, opt); err != nil {
			return nil, err
		}
	}
	if o.report, err = create(opt.Report); err != nil {
		return nil, err
	}
	for _, s := range []struct {
		to     **output
		signal otlp.Signal
		name   string
	}{{&o.traces, otlp.Traces, opt.Traces}, {&o.logs, otlp.Logs, opt.Logs}} {
		f, err := create(s.name)
		if err != nil {
			o.abort()
			return nil, err
		}
		*s.to = &output{signal: s.signal, name: s.name, file: f, sent: o.sent, todo: make(chan []byte, queued), free: make(chan []byte, queued+2)}
		(*s.to).ended.Add(1)
		go (*s.to).work()
	}
	return o, nil
}

func create(name string) (*tool.AtomicFile, error) {
	if name == "" {
		return nil, nil
	}
	f, err := tool.CreateAtomic(name)
	if err != nil {
		return nil, tool.CannotWrite(name, err)
	}
	return f, nil
}

// send takes a request, and returns a buffer for the next one.
func (o *output) send(request []byte) ([]byte, error) {
	if err := o.failure(); err != nil {
		return nil, err
	}
	o.todo <- request
	select {
	case b := <-o.free:
		return b[:0], nil
	default:
		return nil, nil
	}
}

func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// work writes and sends. After a failure it only takes what still comes.
func (o *output) work() {
	defer o.ended.Done()
	for b := range o.todo {
		if o.failure() == nil {
			if err := o.put(b); err != nil {
				o.mu.Lock()
				o.err = err
				o.mu.Unlock()
			}
		}
		select {
		case o.free <- b:
		default:
		}
	}
}

func (o *output) put(b []byte) error {
	if o.file != nil {
		if _, err := o.file.Write(b); err != nil {
			return tool.CannotWrite(o.name, err)
		}
	}
	if o.sent != nil {
		return o.sent.post(o.signal, b)
	}
	return nil
}

// stop waits until everything was taken.
func (o *output) stop() error {
	if !o.stopped {
		o.stopped = true
		close(o.todo)
		o.ended.Wait()
	}
	return o.failure()
}

// drain waits for both.
func (o *outputs) drain() error { return errors.Join(o.logs.stop(), o.traces.stop()) }

// commit gives the files their names: the report is the last one.
func (o *outputs) commit(x *exporter) error {
	if o.report != nil {
		b, err := schemas.Marshal(x.report(o.sent))
		if err == nil {
			_, err = o.report.Write(append(b, '\n'))
		}
		if err != nil {
			return tool.CannotWrite(o.report.Path(), err)
		}
	}
	for _, f := range []*tool.AtomicFile{o.traces.file, o.logs.file, o.report} {
		if f == nil {
			continue
		}
		if err := f.Commit(); err != nil {
			return tool.CannotWrite(f.Path(), err)
		}
	}
	return nil
}

// abort leaves no file that was not committed.
func (o *outputs) abort() {
	for _, p := range []*output{o.traces, o.logs} {
		if p == nil {
			continue
		}
		p.stop()
		if p.file != nil {
			p.file.Abort()
		}
	}
	if o.report != nil {
		o.report.Abort()
	}
}

// verdict says what the endpoint did not take.
func (o *outputs) verdict(env *tool.Env) error {
	if o.sent == nil {
		return nil
	}
	return o.sent.verdict(env)
}
