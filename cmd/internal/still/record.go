package still

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// StreamFile is the name of the stream in the record of a measured run.
const StreamFile = "clock.ndjson"

// Record is a record of runner-clock.
type Record struct {
	Clock schemas.Clock
	Ticks []schemas.ClockTick
}

// Read reads a record. It must be whole.
func Read(file string) (*Record, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, tool.CannotRead(file, err)
	}
	defer f.Close()
	return parse(f, file)
}

func parse(f io.Reader, file string) (*Record, error) {
	in, err := stream.NewReader(f, file, schemas.StreamClock)
	if err != nil {
		return nil, tool.StreamError(err)
	}
	r := new(Record)
	for {
		rec, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, tool.StreamError(err)
		}
		if err := r.line(rec); err != nil {
			return nil, tool.StreamError(in.Errorf("%v", err))
		}
	}
	if r.Clock.Schema == "" {
		return nil, tool.StreamError(in.Errorf("it says nothing of the clock"))
	}
	return r, nil
}

func (r *Record) line(rec stream.Record) error {
	if r.Clock.Schema == "" {
		c, err := schemas.ParseClock(rec.Bytes)
		if err == nil {
			r.Clock = *c
		}
		return err
	}
	t, err := schemas.ParseClockTick(rec.Bytes)
	if err != nil {
		return err
	}
	if t.Seq != uint64(len(r.Ticks)) {
		return fmt.Errorf("seq is %d, expected %d", t.Seq, len(r.Ticks))
	}
	r.Ticks = append(r.Ticks, *t)
	return nil
}

// Write writes the record as a sealed stream.
func (r *Record) Write(w io.Writer) error {
	s, err := stream.NewWriter(w, stream.Header{Stream: schemas.StreamClock, RunID: r.Clock.RunID, Tool: schemas.StageClock, Version: tool.Version()})
	if err != nil {
		return err
	}
	if err := s.Write(r.Clock); err != nil {
		return err
	}
	for i := range r.Ticks {
		if err := s.Write(&r.Ticks[i]); err != nil {
			return err
		}
	}
	status := schemas.StatusComplete
	if r.Clock.Bad+r.Clock.Lost > 0 {
		status = schemas.StatusPartial
	}
	return s.Seal(status)
}

// Plain writes the ticks as the shims read them.
func Plain(file string, ticks []schemas.ClockTick) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	for i := range ticks {
		t := &ticks[i]
		b, err := schemas.Marshal(line{t.Process, t.Tick, t.Op, t.ForNS, t.AtNS})
		if err == nil {
			_, err = f.Write(append(b, '\n'))
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}
