package schemas

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The layer times is optional: runner-exec --times adds it. It has the time of each line of
// the other layers, in nanoseconds since run_started, and the wall clock at run_started.

// Types of lines of the layer times.
const (
	TimeAnchor = "anchor" // the first line
	TimeLine   = "line"
)

// Clocks, by the names that Linux gives them.
const (
	ClockMonotonic = "CLOCK_MONOTONIC"
	ClockRealtime  = "CLOCK_REALTIME"
)

// Sources of times: who read the clock, and when.
const (
	TimeKernel   = "kernel"   // the probe, at the event
	TimeProxy    = "proxy"    // runner-policy, at the call and at its end
	TimeReceived = "received" // runner-exec, when it had read the line of the log
)

// TimeSources are all sources of times.
var TimeSources = [...]string{TimeKernel, TimeProxy, TimeReceived}

// TimeEvent is one line of layers/times.ndjson: the anchor, or the time of one line of
// another layer.
type TimeEvent struct {
	RunID string
	Seq   uint64
	Type  string

	// Of the anchor.
	WallNS     uint64 // CLOCK_REALTIME at run_started
	FinishedNS uint64 // from run_started to run_finished

	// Of a line.
	Layer  string // name of the layer
	Line   uint64 // seq of the line there
	Source string
	NS     uint64 // since run_started
	HasEnd bool
	EndNS  uint64 // the same, of the call's end
}

// Of names the line that a time is about.
func (t TimeEvent) Of() string {
	return "line " + strconv.FormatUint(t.Line, 10) + " of layer " + t.Layer
}

// AppendJSON appends the line's canonical form, without LF.
func (t *TimeEvent) AppendJSON(dst []byte) []byte {
	dst = append(append(dst, `{"schema":"`+SchemaTime+`","run_id":"`...), t.RunID...)
	dst = strconv.AppendUint(append(dst, `","seq":`...), t.Seq, 10)
	if t.Type == TimeAnchor {
		dst = append(dst, `,"type":"`+TimeAnchor+`","clock":"`+ClockMonotonic+`","wall_clock":"`+ClockRealtime+`","wall_ns":`...)
		dst = strconv.AppendUint(dst, t.WallNS, 10)
		dst = strconv.AppendUint(append(dst, `,"finished_ns":`...), t.FinishedNS, 10)
		return append(dst, '}')
	}
	dst = append(append(dst, `,"type":"`+TimeLine+`","layer":"`...), t.Layer...)
	dst = strconv.AppendUint(append(dst, `","line":`...), t.Line, 10)
	dst = append(append(dst, `,"source":"`...), t.Source...)
	dst = strconv.AppendUint(append(dst, `","ns":`...), t.NS, 10)
	if t.HasEnd {
		dst = strconv.AppendUint(append(dst, `,"end_ns":`...), t.EndNS, 10)
	}
	return append(dst, '}')
}

// MarshalJSON is AppendJSON.
func (t *TimeEvent) MarshalJSON() ([]byte, error) { return t.AppendJSON(nil), nil }

// ParseTime parses one line of layers/times.ndjson: the canonical form directly, any
// other order of keys by way of a tree.
func ParseTime(line []byte) (*TimeEvent, error) {
	t := new(TimeEvent)
	if t.scan(line) {
		return t, nil
	}
	if err := t.decode(line); err != nil {
		return nil, fmt.Errorf("time: %w", err)
	}
	return t, nil
}

// scan reads the canonical form.
func (t *TimeEvent) scan(line []byte) bool {
	var s scanner
	s.reset(line)
	number := func(key string) (n uint64) {
		if s.lit(key) {
			n, _ = s.uint(math.MaxUint64)
		}
		return n
	}
	word := func(key string) (text string) {
		if s.lit(key) {
			b, _ := s.str()
			text = knownWord(b)
		}
		return text
	}
	*t = TimeEvent{}
	t.RunID = word(`{"schema":"` + SchemaTime + `","run_id":`)
	t.Seq = number(`,"seq":`)
	switch t.Type = word(`,"type":`); t.Type {
	case TimeAnchor:
		t.WallNS = number(`,"clock":"` + ClockMonotonic + `","wall_clock":"` + ClockRealtime + `","wall_ns":`)
		t.FinishedNS = number(`,"finished_ns":`)
	case TimeLine:
		t.Layer = word(`,"layer":`)
		t.Line = number(`,"line":`)
		t.Source = word(`,"source":`)
		t.NS = number(`,"ns":`)
		if s.err == nil && strings.HasPrefix(string(s.b[s.i:min(s.i+2, len(s.b))]), ",") {
			t.EndNS, t.HasEnd = number(`,"end_ns":`), true
		}
	default:
		return false
	}
	return s.lit("}") && s.i == len(line) && s.err == nil && t.check() == nil
}

// knownWord is the text of b, without a copy where it is one that many lines have.
func knownWord(b []byte) string {
	for _, w := range [...]string{TimeLine, TimeKernel, TimeReceived, LayerSDK, LayerPolicy, TimeProxy} {
		if string(b) == w {
			return w
		}
	}
	return string(b)
}

type timeAnchor struct {
	Schema     string `json:"schema"`
	RunID      string `json:"run_id"`
	Seq        uint64 `json:"seq"`
	Type       string `json:"type"`
	Clock      string `json:"clock"`
	WallClock  string `json:"wall_clock"`
	WallNS     uint64 `json:"wall_ns"`
	FinishedNS uint64 `json:"finished_ns"`
}

type timeLine struct {
	Schema string  `json:"schema"`
	RunID  string  `json:"run_id"`
	Seq    uint64  `json:"seq"`
	Type   string  `json:"type"`
	Layer  string  `json:"layer"`
	Line   uint64  `json:"line"`
	Source string  `json:"source"`
	NS     uint64  `json:"ns"`
	EndNS  *uint64 `json:"end_ns,omitempty"`
}

func (t *TimeEvent) decode(line []byte) error {
	var tree map[string]any
	if err := Unmarshal(line, &tree); err != nil {
		return err
	}
	schema := ""
	if tree["type"] == TimeAnchor {
		var a timeAnchor
		if err := decode(line, &a); err != nil {
			return err
		}
		if err := first(oneOf("clock", a.Clock, ClockMonotonic), oneOf("wall_clock", a.WallClock, ClockRealtime)); err != nil {
			return err
		}
		schema = a.Schema
		*t = TimeEvent{RunID: a.RunID, Seq: a.Seq, Type: a.Type, WallNS: a.WallNS, FinishedNS: a.FinishedNS}
	} else {
		var l timeLine
		if err := decode(line, &l); err != nil {
			return err
		}
		schema = l.Schema
		*t = TimeEvent{RunID: l.RunID, Seq: l.Seq, Type: l.Type, Layer: l.Layer, Line: l.Line, Source: l.Source, NS: l.NS}
		if l.EndNS != nil {
			t.EndNS, t.HasEnd = *l.EndNS, true
		}
	}
	return first(head(schema, SchemaTime, t.RunID), t.check())
}

// check checks what does not follow from the types of the keys. runner-verify checks the
// names of the layers, and that no end is before its start.
func (t *TimeEvent) check() error {
	if err := head(SchemaTime, SchemaTime, t.RunID); err != nil {
		return err
	}
	if t.Type == TimeAnchor {
		return first(boundedTime("wall_ns", t.WallNS), boundedTime("finished_ns", t.FinishedNS))
	}
	plain := t.Layer != ""
	for _, c := range []byte(t.Layer) {
		plain = plain && (c == '_' || 'a' <= c && c <= 'z')
	}
	if !plain {
		return fmt.Errorf("layer is %.100q, expected lower-case letters and _", t.Layer)
	}
	return first(oneOf("type", t.Type, TimeAnchor, TimeLine), oneOf("source", t.Source, TimeSources[:]...),
		boundedTime("ns", t.NS), boundedTime("end_ns", t.EndNS))
}

// MaxTimeNS bounds every time of the layer, in nanoseconds (146 years), so that the sum
// of the wall clock and a time fits in 64 bits with a sign.
const MaxTimeNS = 1<<62 - 1

func boundedTime(key string, ns uint64) error {
	if ns > MaxTimeNS {
		return fmt.Errorf("%s is %d, at most %d", key, ns, uint64(MaxTimeNS))
	}
	return nil
}

// RunClock is the moment run_started on two clocks that were read together.
type RunClock struct {
	MonotonicNS uint64 `json:"monotonic_ns"`
	RealtimeNS  uint64 `json:"realtime_ns"`
}

// RunSpan is when a run started and when its command ended, from the fact run_clock of
// runner-capture's health.
type RunSpan struct {
	RunClock
	FinishedNS uint64 // from run_started on
}

const runSpanForm = "monotonic_ns=%d realtime_ns=%d finished_ns=%d"

// String is the text of the fact.
func (r RunSpan) String() string {
	return fmt.Sprintf(runSpanForm, r.MonotonicNS, r.RealtimeNS, r.FinishedNS)
}

// ParseRunSpan reads the fact.
func ParseRunSpan(s string) (r RunSpan, err error) {
	_, err = fmt.Sscanf(s, runSpanForm, &r.MonotonicNS, &r.RealtimeNS, &r.FinishedNS)
	if err != nil || r.String() != s || r.MonotonicNS == 0 {
		return RunSpan{}, fmt.Errorf("run_clock=%.100q, expected monotonic_ns=N realtime_ns=N finished_ns=N", s)
	}
	if err := first(boundedTime("monotonic_ns", r.MonotonicNS), boundedTime("realtime_ns", r.RealtimeNS), boundedTime("finished_ns", r.FinishedNS)); err != nil {
		return RunSpan{}, fmt.Errorf("run_clock: %w", err)
	}
	return r, nil
}
