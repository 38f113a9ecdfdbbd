package main

import (
	"io"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// lines gathers encoded lines into chunks and hands them to the spool. Its writer runs
// in a separate goroutine, the only one that blocks on output.
type lines struct {
	runID string
	spool *spool
	cur   chunk
	done  chan error
}

func newLines(runID string, sp *spool) *lines {
	return &lines{runID: runID, spool: sp, cur: chunk{b: sp.buffer()}, done: make(chan error, 1)}
}

// start writes the header, which says that the hooks are attached, and then
// everything that comes through the spool.
func (l *lines) start(w io.Writer, h stream.Header, failed func(error)) (*stream.Writer, error) {
	sw, err := stream.NewWriter(w, h)
	if err != nil {
		return nil, err
	}
	go func() {
		err := l.copy(sw)
		if err != nil {
			l.spool.fail(err)
			failed(err)
		}
		l.done <- err
	}()
	return sw, nil
}

func (l *lines) copy(sw *stream.Writer) error {
	for {
		c, err := l.spool.get()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := sw.WriteBlock(c.b, c.n); err != nil {
			return err
		}
		l.spool.release(c.b)
		if l.spool.idle() {
			if err := sw.Flush(); err != nil {
				return err
			}
		}
	}
}

// event appends one raw event.
func (l *lines) event(e *schemas.RawEvent) error {
	l.cur.b = append(e.AppendJSON(l.cur.b, l.runID), '\n')
	return l.added()
}

// value appends any other record.
func (l *lines) value(v any) error {
	b, err := schemas.Marshal(v)
	if err != nil {
		return err
	}
	l.cur.b = append(append(l.cur.b, b...), '\n')
	return l.added()
}

func (l *lines) added() error {
	l.cur.n++
	if len(l.cur.b) < chunkSize {
		return nil
	}
	return l.flush()
}

// flush hands on what has gathered.
func (l *lines) flush() error {
	if l.cur.n == 0 {
		return nil
	}
	err := l.spool.put(l.cur)
	l.cur = chunk{b: l.spool.buffer()}
	return err
}

// finish hands on the rest and waits until everything is written.
func (l *lines) finish() error {
	if err := l.flush(); err != nil {
		return err
	}
	l.spool.finish()
	return <-l.done
}
