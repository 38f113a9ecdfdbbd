package main

import (
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// message is what the goroutines around the ring loop post to it. One field is set.
type message struct {
	canary  *canaryEnd // the canary process ended
	control *schemas.Control
	fail    error // the run cannot go on
	empty   bool  // no process is left in the cgroup
	grace   bool  // the survivors' time is over
	waiting bool  // the wait for survivors is long enough to be told
	signal  os.Signal
}

// post sends a message to the ring loop and wakes it, even if a full spool holds it up.
func (r *captureRun) post(m message) {
	if m.fail != nil {
		r.sp.fail(m.fail)
	}
	select {
	case r.messages <- m:
		r.ses.Ring.Flush()
	case <-r.ctx.Done():
	}
}

// actOnMessages acts on those that came before the ring was last read to its end.
func (r *captureRun) actOnMessages() error {
	if err := r.actAll(); err != nil {
		return err
	}
	if r.collect(); len(r.pending) > 0 {
		r.ses.Ring.Flush() // once more to the end, then act
	}
	return nil
}

// collect takes the messages that were posted.
func (r *captureRun) collect() {
	for {
		select {
		case m := <-r.messages:
			r.pending = append(r.pending, m)
		default:
			return
		}
	}
}

func (r *captureRun) actAll() error {
	now := r.pending
	r.pending, r.until = nil, 0
	for _, m := range now {
		if err := r.act(m); err != nil {
			return err
		}
	}
	return nil
}

// act acts on one message. Everything that the kernel reported before it has been
// read.
func (r *captureRun) act(m message) error {
	switch {
	case m.fail != nil:
		return tool.Fail(tool.ExitIO, m.fail)
	case m.canary != nil:
		return r.canaryEnded(m.canary)
	case m.control != nil:
		return r.controlled(m.control)
	case m.empty && r.phase == running:
		return r.close(schemas.EndEmpty)
	case m.waiting && r.phase == running:
		r.tellWaiting()
	case m.grace && r.phase == running:
		return r.killSurvivors()
	case m.signal != nil && r.phase == running:
		if r.opt.supervised {
			return tool.Failf(tool.ExitIO, "stopped by %v before the command ended", m.signal)
		}
		return r.close(schemas.EndSignal)
	case m.signal != nil && r.phase == opening:
		return tool.Failf(tool.ExitIO, "stopped by %v before the hooks were ready", m.signal)
	}
	return nil
}
