package main

import (
	"fmt"
	"os"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/clock"
	"github.com/runner-evidence/runner/schemas"
)

// recorder is told when the command starts and how it ended. With a kernel
// layer that is runner-capture at the end of its control pipe, else a raw stream that
// runner-exec writes itself.
type recorder interface {
	open() error                 // before the command starts
	started(Options) error       // an error here means: do not start it
	finished(child.Ending) error // the end of the record
	abandon()                    // there will be no record
}

// controlLines speaks to runner-capture (schemas/STREAMS.md, "Control lines"). Closing
// the pipe without "finished" tells it that the supervisor is gone.
type controlLines struct {
	w     *os.File
	times bool
}

func (c *controlLines) open() error { return nil }

func (c *controlLines) started(o Options) error {
	line := schemas.Control{Schema: schemas.SchemaControl, Op: schemas.ControlStarted, Command: o.commandText(),
		AgentShim: o.AgentShim, EnvKeys: o.envKeys(), InheritedFDs: inheritedFDs()}
	if c.times = o.Times; c.times {
		now := clock.Both()
		line.Clock = &now
	}
	return c.send(line)
}

func (c *controlLines) finished(e child.Ending) error {
	f := runFinished("", e)
	// The pipe stays open: as long as it does, runner-capture has a supervisor.
	line := schemas.Control{Schema: schemas.SchemaControl, Op: schemas.ControlFinished, ExitCode: f.ExitCode, Signal: f.Signal}
	if c.times {
		line.MonotonicNS = clock.Monotonic()
	}
	return c.send(line)
}

func (c *controlLines) send(v any) error {
	line, err := schemas.Marshal(v)
	if err != nil {
		return err
	}
	// A stopped runner-capture must not hang us for ever on a full pipe.
	c.w.SetWriteDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("telling runner-capture: %w", err)
	}
	return nil
}

func (c *controlLines) abandon() { c.w.Close() }
