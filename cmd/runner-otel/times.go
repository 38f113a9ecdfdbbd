package main

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/evidence"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// clock gives each line its time, in a run that recorded times. The layer times comes last in an archive, and has
// its lines in the order of the others: a second reading goes along with the first one.
type clock struct {
	next func() (*schemas.TimeEvent, error, bool)
	stop func()
	wall uint64 // at the start of the run; 0: there are no times
	end  uint64 // of the run
}

// errEnough ends the second reading.
var errEnough = errors.New("enough")

func newClock(ctx context.Context, e *evidence.Evidence) (*clock, error) {
	c := &clock{stop: func() {}}
	if !slices.ContainsFunc(e.Report.Record.Notes, func(n string) bool { return strings.HasPrefix(n, schemas.NoteTimes.Code+":") }) {
		return c, nil
	}
	c.next, c.stop = iter.Pull2(func(yield func(*schemas.TimeEvent, error) bool) {
		err := e.Read(ctx, archive.Visitor{Line: func(l *archive.Line) error {
			if t, ok := l.Event.(*schemas.TimeEvent); ok && !yield(t, nil) {
				return errEnough
			}
			return nil
		}})
		if err != nil && err != errEnough {
			yield(nil, err)
		}
	})
	anchor, err, ok := c.next()
	if !ok || err != nil || anchor.Type != schemas.TimeAnchor {
		return c, errors.Join(errors.New("the layer times has no anchor"), err)
	}
	c.wall, c.end = anchor.WallNS, anchor.WallNS+anchor.FinishedNS
	return c, nil
}

// moment is when a line happened.
type moment struct {
	at, end uint64 // nanoseconds since 1970; 0 is not known
	source  string
}

// of is the time of the next line of a layer that has times.
func (c *clock) of(layer string, seq uint64) (moment, error) {
	if c.next == nil {
		return moment{}, nil
	}
	t, err, ok := c.next()
	switch {
	case err != nil:
		return moment{}, err
	case !ok || t.Layer != layer || t.Line != seq:
		return moment{}, errors.New("the layer times is not in the order of the lines")
	}
	m := moment{at: c.wall + t.NS, source: t.Source}
	if t.HasEnd {
		m.end = c.wall + t.EndNS
	}
	return m, nil
}
