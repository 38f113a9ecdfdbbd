package main

import (
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// The rules for the layer times: one anchor, then one time for each line of the other
// layers, in the order of the layer table and of their lines.

const (
	ruleTimesLines = "times.lines"
	ruleTimesNote  = "times.note"
)

const timesLayerName = schemas.MemberTimes

// timesLayer is how far the layer times has come. Its member follows those of the
// layers that it is about, so their lines are counted.
type timesLayer struct {
	anchored bool
	layer    int    // place in schemas.Layers of the line that is due
	line     uint64 // its number there
	last     uint64 // time of the line before it in a layer that is in the order of its log
	lost     bool   // the order was broken; what follows would only repeat it
	windows  windowTimes
	calls    callTimes
}

// due is the layer whose line is due, nil after the last line of all.
func (v *verifier) due() *schemas.Layer {
	t := &v.times
	for ; schemas.Layers[t.layer].Name != schemas.LayerTimes; t.layer, t.line, t.last = t.layer+1, 0, 0 {
		if l := &schemas.Layers[t.layer]; !l.Normalized && l.Wrapper == "" && t.line < v.lineCount(l.Member) {
			return l
		}
	}
	return nil
}

// timeLine checks that a line of the layer times is the one that is due.
func (v *verifier) timeLine(l *archive.Line, e *schemas.TimeEvent) {
	t := &v.times
	if t.lost {
		return
	}
	first := !t.anchored
	t.anchored = true
	if first != (e.Type == schemas.TimeAnchor) {
		t.lost = !first
		v.faultTime(l, "type is %s, expected one anchor, as the first line", e.Type)
	}
	if e.Type == schemas.TimeAnchor {
		return
	}
	layer := v.due()
	if layer == nil || e.Layer != layer.Name || e.Line != t.line {
		t.lost = true
		want := "no more lines"
		if layer != nil {
			want = schemas.TimeEvent{Layer: layer.Name, Line: t.line}.Of()
		}
		v.faultTime(l, "is about %s, expected %s", e.Of(), want)
		return
	}
	v.timeValues(l, e)
	v.windowTime(e)
	v.callTime(e)
	t.line++
}

// timeValues checks what a time says against the line that it is about.
func (v *verifier) timeValues(l *archive.Line, e *schemas.TimeEvent) {
	own, ended := e.Layer == schemas.LayerKernel, false
	ownSource := schemas.TimeKernel
	if e.Layer == schemas.LayerPolicy {
		ownSource = schemas.TimeProxy
		if i := int(e.Line); i < len(v.policy.list) {
			own, ended = v.policy.list[i].timed, v.policy.list[i].ended()
		}
	}
	switch {
	case e.Source != schemas.TimeReceived && (!own || e.Source != ownSource), e.Source == schemas.TimeReceived && e.Layer == schemas.LayerKernel:
		v.faultTime(l, "source %s, which %s cannot have", e.Source, e.Of())
	case e.HasEnd != ended:
		v.faultTime(l, "end_ns of %s does not go with the outcome of the call", e.Of())
	case e.HasEnd && e.EndNS < e.NS:
		v.faultTime(l, "end_ns %d of %s is before ns %d", e.EndNS, e.Of(), e.NS)
	}
	// A log is read from its beginning to its end, and only decisions change places.
	if e.Source == schemas.TimeReceived && e.Layer != schemas.LayerPolicy {
		if e.NS < v.times.last {
			v.faultTime(l, "%s was read %d ns after run_started, before the line that precedes it", e.Of(), e.NS)
		}
		v.times.last = e.NS
	}
}

// timesComplete checks after the member that no line is without a time.
func (v *verifier) timesComplete() {
	if v.times.lost || !v.sound(timesLayerName) {
		return
	}
	if !v.times.anchored {
		v.add(ruleTimesLines, timesLayerName, 0, "no anchor")
	} else if l := v.due(); l != nil {
		v.add(ruleTimesLines, timesLayerName, 0, "no time of %s", schemas.TimeEvent{Layer: l.Name, Line: v.times.line}.Of())
	}
}

func (v *verifier) faultTime(l *archive.Line, format string, a ...any) {
	v.add(ruleTimesLines, l.Member, l.Number, format, a...)
}

// timesNote checks that the layer and its note are both there or both absent.
func (v *verifier) timesNote() {
	_, there := v.members[timesLayerName]
	switch noted := v.noted(schemas.NoteTimes); {
	case there && !noted:
		v.faultHealth(ruleTimesNote, "no note %s, but there is the member %s", schemas.NoteTimes.Code, timesLayerName)
	case !there && noted:
		v.faultHealth(ruleTimesNote, "note %s without the member %s", schemas.NoteTimes.Code, timesLayerName)
	case there:
		if n, _ := v.noteCount(schemas.NoteTimes, schemas.KeyLines); n+1 != v.lineCount(timesLayerName) {
			v.faultHealth(ruleTimesNote, "%s says lines=%d, the layer has %d after its anchor", schemas.NoteTimes.Code, n, v.lineCount(timesLayerName)-1)
		}
	}
}
