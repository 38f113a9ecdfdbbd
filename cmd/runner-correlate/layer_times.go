package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// timing makes the layer times of a run. The start of the run is known only at the end
// of the kernel stream, so the times of the kernel lines are kept on disk until then.
type timing struct {
	file  *os.File
	w     *bufio.Writer
	lines uint64 // kernel lines
	least uint64 // the earliest of them
	most  uint64 // the latest of them
	n     uint64 // lines of the layer times
	span  schemas.RunSpan
}

const timeBytes = 8

func newTiming() (*timing, error) {
	f, err := tool.Spool()
	if err != nil {
		return nil, err
	}
	return &timing{file: f, w: bufio.NewWriterSize(f, 64<<10), least: math.MaxUint64}, nil
}

func (t *timing) close() { t.file.Close() }

// kernelLine stores the time of the next kernel line.
func (t *timing) kernelLine(ktime uint64) error {
	t.lines++
	t.least, t.most = min(t.least, ktime), max(t.most, ktime)
	_, err := t.w.Write(binary.LittleEndian.AppendUint64(t.w.AvailableBuffer(), ktime))
	return err
}

// stamp is when a line of a layer from a log happened, on CLOCK_MONOTONIC.
type stamp struct {
	received    uint64 // when runner-exec had read the line of the log
	endReceived uint64 // the same for the line that reports the end of the call
	ended       bool   // there is such a line

	hasTimes   bool // the writer of the log gave times of its own
	start, end uint64
}

// plausible reports whether the writer's times can be true: they must be after
// run_started, and before runner-exec read the line.
func (s *stamp) plausible(started uint64) bool {
	if !s.hasTimes || s.start < started || s.start > s.received {
		return false
	}
	return !s.ended || s.start <= s.end && s.end <= s.endReceived
}

// line makes the line of the layer times for a stamp.
func (t *timing) line(s stamp) schemas.TimeEvent {
	e := schemas.TimeEvent{Source: schemas.TimeReceived, HasEnd: s.ended, NS: t.since(s.received)}
	if s.ended {
		e.EndNS = max(t.since(s.endReceived), e.NS)
	}
	if s.plausible(t.span.MonotonicNS) {
		e.Source, e.NS = schemas.TimeProxy, t.since(s.start)
		if s.ended {
			e.EndNS = t.since(s.end)
		}
	}
	return e
}

// since is the time since run_started. It is 0 for what was written before that.
func (t *timing) since(ns uint64) uint64 { return ns - min(ns, t.span.MonotonicNS) }

// readStart takes the time when the run started from the health of the capture.
func (j *joiner) readStart() error {
	if j.timing == nil {
		return nil
	}
	h := j.stages[0]
	fact, there := h.Facts[schemas.FactRunClock]
	switch {
	case !there:
		return j.refuse("%s reports no fact %q, which --times needs; measure with runner-exec --times", h.Stage, schemas.FactRunClock)
	case j.times != timed:
		return j.refuse("the kernel lines have no ktime_ns, which --times needs; runner-normalize --windows adds it")
	}
	span, err := schemas.ParseRunSpan(fact)
	if err != nil {
		return j.refuse("%s reports %v", h.Stage, err)
	}
	j.timing.span = span
	if least := j.timing.least; least < span.MonotonicNS {
		return j.refuse("a kernel line happened %d ns before run_started: the clocks of the probes and of runner-exec differ", span.MonotonicNS-least)
	}
	if j.timing.most > schemas.MaxTimeNS {
		return j.refuse("a kernel line has ktime_ns %d, at most %d", j.timing.most, uint64(schemas.MaxTimeNS))
	}
	return nil
}

// writeTimes writes the layer times: the anchor, then a line for each line of the
// other layers, in their order.
func (j *joiner) writeTimes() error {
	t := j.timing
	if t == nil {
		return nil
	}
	id := j.in.Header().RunID
	var line []byte
	write := func(e schemas.TimeEvent) error {
		e.RunID, e.Seq = id, t.n
		t.n++
		line = e.AppendJSON(line[:0])
		return j.out.WriteRaw(line)
	}
	if err := write(schemas.TimeEvent{Type: schemas.TimeAnchor, WallNS: t.span.RealtimeNS, FinishedNS: t.span.FinishedNS}); err != nil {
		return err
	}
	logs := j.logs
	for _, l := range schemas.Layers {
		var err error
		switch {
		case l.Name == schemas.LayerKernel:
			err = t.eachKernel(func(n, ktime uint64) error {
				return write(schemas.TimeEvent{Type: schemas.TimeLine, Layer: l.Name, Line: n, Source: schemas.TimeKernel, NS: t.since(ktime)})
			})
		case len(logs) > 0 && logs[0].Name == l.Name:
			err = t.eachLine(logs[0], write)
			logs = logs[1:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eachLine writes the times of a layer that is made from a log.
func (t *timing) eachLine(l logLayer, write func(schemas.TimeEvent) error) error {
	for n := range l.count() {
		e := t.line(l.stamp(n))
		e.Type, e.Layer, e.Line = schemas.TimeLine, l.Name, n
		if err := write(e); err != nil {
			return err
		}
	}
	return nil
}

// eachKernel calls f with the number and the time of every kernel line.
func (t *timing) eachKernel(f func(n, ktime uint64) error) error {
	if err := t.w.Flush(); err != nil {
		return tool.ScratchError(err)
	}
	r := bufio.NewReaderSize(io.NewSectionReader(t.file, 0, int64(t.lines*timeBytes)), 64<<10)
	var b [timeBytes]byte
	for n := range t.lines {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return tool.ScratchError(err)
		}
		if err := f(n, binary.LittleEndian.Uint64(b[:])); err != nil {
			return err
		}
	}
	return nil
}

// timedLines is the number of lines that have a time.
func (j *joiner) timedLines() uint64 {
	n := j.lines
	for _, l := range j.logs {
		n += l.count()
	}
	return n
}
