package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/runner-evidence/runner/bpf"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// loop reads the ring and acts on messages, in turn, in one goroutine.
func (r *captureRun) loop() error {
	if err := r.begin(); err != nil {
		return err
	}
	sigs := make(chan os.Signal, 4)
	signal.Notify(sigs, syscall.SIGTERM, syscall.SIGINT) // to the end: one that comes after the seal changes nothing
	go func() {
		for {
			select {
			case s := <-sigs:
				r.post(message{signal: s})
			case <-r.ctx.Done():
				return
			}
		}
	}()
	var rec ringbuf.Record
	wait := bpf.Wait(r.opt.ringSize)
	r.ses.Ring.SetDeadline(time.Now().Add(wait))
	for {
		switch err := r.ses.Ring.ReadInto(&rec); {
		case err == nil:
			if err := r.ev.record(rec.RawSample); err != nil {
				return output(err)
			}
			if err := r.busy(len(rec.RawSample)); err != nil {
				return err
			}
			continue
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, ringbuf.ErrFlushed):
		default:
			return tool.Fail(tool.ExitIO, fmt.Errorf("reading the ring: %w", err))
		}
		// The ring has just been read to its end.
		r.ses.ReadTo(r.consumed)
		if r.phase == draining {
			done, err := r.drained()
			if done || err != nil {
				return err
			}
			continue
		}
		if err := r.insertStaged(); err != nil {
			return output(err)
		}
		if r.sw != nil {
			if err := r.lines.flush(); err != nil {
				return output(err)
			}
		}
		if err := r.actOnMessages(); err != nil {
			return err
		}
		r.ses.Ring.SetDeadline(time.Now().Add(wait))
	}
}

// insertStaged writes what the listener refused before the ring was last read to its end.
func (r *captureRun) insertStaged() error {
	events, more := r.guard.stage()
	if more {
		r.ses.Ring.Flush()
	}
	return r.ev.insert(events)
}

// busy acts on messages while records keep coming: a program that fills the ring
// faster than it can be read must not hide the end of its supervisor, or of its
// time. What was in the ring when a message came is read first.
func (r *captureRun) busy(size int) error {
	r.consumed += uint64(size+ringHeader+7) &^ 7
	if r.records++; r.records%1024 == 0 && len(r.pending) == 0 && r.phase != draining {
		r.collect()
		r.until = r.consumed + uint64(r.ses.Ring.AvailableBytes())
	}
	if len(r.pending) == 0 || r.until == 0 || r.consumed < r.until {
		return nil
	}
	return r.actAll()
}

// ringHeader is the size of what the ring keeps before each record (BPF_RINGBUF_HDR_SZ).
const ringHeader = 8
