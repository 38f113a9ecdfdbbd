package main

import (
	"fmt"
	"os"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/clock"
	"github.com/runner-evidence/runner/cmd/internal/wrap"
	"github.com/runner-evidence/runner/schemas"
)

// recorder records when the command starts and how it ended. With a kernel layer it
// sends both to runner-capture over the control pipe. Without one, runner-exec writes
// the raw stream itself.
type recorder interface {
	open() error                 // before the command starts
	started(Options) error       // after an error the command is not started
	finished(child.Ending) error // the end of the record
	abandon()                    // there will be no record
}

// controlLines sends control lines to runner-capture (schemas/STREAMS.md, "Control
// lines"). If the pipe closes without "finished", the supervisor is gone.
type controlLines struct {
	w     *os.File
	times bool
}

func (c *controlLines) open() error { return nil }

func (c *controlLines) started(o Options) error {
	inherited, err := child.Inherited()
	if err != nil {
		return err
	}
	given, _, err := wrap.Take(child.Environ()) // of runner-replay
	if err != nil {
		return err
	}
	inherited -= given.Descriptors()
	line := schemas.Control{Schema: schemas.SchemaControl, Op: schemas.ControlStarted, Command: o.commandText(),
		AgentShim: o.AgentShim, EnvKeys: o.envKeys(), InheritedFDs: inherited, Confined: o.Confine.InForce()}
	if c.times = o.Times; c.times {
		now := clock.Both()
		line.Clock = &now
	}
	return c.send(line)
}

func (c *controlLines) finished(e child.Ending) error {
	f := runFinished("", e)
	// The pipe stays open: it shows runner-capture that the supervisor is alive.
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
	// If runner-capture is stopped and the pipe is full, the write must not block forever.
	c.w.SetWriteDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing to runner-capture's control pipe: %w", err)
	}
	return nil
}

func (c *controlLines) abandon() { c.w.Close() }
