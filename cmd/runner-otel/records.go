package main

import (
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/otlp"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// Severities of OTLP.
const (
	severityInfo = 9
	severityWarn = 13
)

// record is what a log record has beside its attributes.
type record struct {
	time     moment
	severity int
	event    string
	call     string // tool call, or ""
	dropped  int
}

// open appends the beginning of a record.
func (x *exporter) open(dst []byte, r *record) []byte {
	dst = append(dst, '{')
	if r.time.at > 0 {
		dst = strconv.AppendUint(append(dst, `"timeUnixNano":"`...), r.time.at, 10)
		dst = append(dst, `",`...)
	}
	if x.opt.Generated > 0 {
		dst = strconv.AppendUint(append(dst, `"observedTimeUnixNano":"`...), x.opt.Generated, 10)
		dst = append(dst, `",`...)
	}
	return x.named(dst, r.severity, r.event)
}

// named appends severity and name, and begins the attributes.
func (x *exporter) named(dst []byte, severity int, event string) []byte {
	dst = strconv.AppendInt(append(dst, `"severityNumber":`...), int64(severity), 10)
	dst = schemas.AppendQuote(append(dst, `,"eventName":`...), []byte(event))
	return append(dst, `,"attributes":[`...)
}

// shut appends the end of a record.
func (x *exporter) shut(dst []byte, r *record) []byte {
	if r.time.source != "" {
		dst = otlp.Text(dst, attrTimeOf, r.time.source)
	}
	dst = append(otlp.Trim(dst), ']')
	if r.dropped > 0 {
		dst = strconv.AppendInt(append(dst, `,"droppedAttributesCount":`...), int64(r.dropped), 10)
	}
	dst = append(append(append(dst, `,"traceId":"`...), x.trace.ID...), '"')
	span := x.trace.Parent
	if c := x.calls[r.call]; c != nil {
		span = c.span
	}
	if span != "" {
		dst = append(append(append(dst, `,"spanId":"`...), span...), '"')
	}
	return append(dst, '}')
}

// line takes a line of the archive.
func (x *exporter) line(l *archive.Line) error {
	if t, ok := l.Event.(*schemas.TimeEvent); ok {
		return x.timeLine(t)
	}
	m, err := x.member(l.Member)
	if err != nil {
		return err
	}
	r, line := record{severity: severityInfo}, l.Bytes
	switch e := l.Event.(type) {
	case *schemas.KernelEvent:
		return x.kernelLine(m, e)
	case *schemas.Intent:
		if r.time, err = x.clock.of(schemas.LayerIntents, e.Seq); err != nil {
			return err
		}
		// Its payload is one text: a program that reads it has the bytes of the record.
		text := *e
		text.Payload = schemas.AppendQuote(nil, []byte(e.Payload))
		if line, err = schemas.Marshal(&text); err != nil {
			return err
		}
	case *schemas.RunStarted:
		r.time = moment{at: x.clock.wall}
	case *schemas.RunFinished:
		r.time = moment{at: x.clock.end}
	case *schemas.PolicyEvent:
		r.call = e.ToolCallID
		if e.Decision != schemas.DecisionAllow {
			r.severity = severityWarn
		}
		if r.time, err = x.clock.of(schemas.LayerPolicy, e.Seq); err != nil {
			return err
		}
		x.calls[r.call].during(r.time)
	case *schemas.SDKEvent:
		if r.time, err = x.clock.of(schemas.LayerSDK, e.Seq); err != nil {
			return err
		}
		if e.ToolCallID != nil {
			r.call = *e.ToolCallID
			x.calls[r.call].reported(r.time)
		}
	}
	return x.tree(m, line, &r)
}

// tree makes a record of a line or document by the table.
func (x *exporter) tree(m *member, b []byte, r *record) error {
	tree, err := object(b)
	if err != nil {
		return err
	}
	f := fields{m: m, sensitive: x.opt.Sensitive, moved: map[string]string{}}
	attributes := f.append(nil, "", tree)
	r.event, r.dropped = m.event+f.moved[toEventName], r.dropped+f.dropped
	dst := append(x.open(x.logs.Record(), r), attributes...)
	return x.logs.Done(x.shut(dst, r))
}

// kernelLine makes a record of a kernel line.
func (x *exporter) kernelLine(m *member, e *schemas.KernelEvent) error {
	t, err := x.clock.of(schemas.LayerKernel, e.Seq)
	if err != nil {
		return err
	}
	r := record{time: t}
	kind := e.Kind
	if kind == "" {
		kind = schemas.KindOf(e.EventType)
	}
	if schemas.SetOf(e.EventType) < 0 && !schemas.Refused(e.EventType) && schemas.EffectVerb(e) == schemas.KindOf(e.EventType) {
		x.unnamed(e.EventType)
	}
	dst := x.logs.Record()
	if head := x.kinds[kind]; head != nil && t.at == 0 && x.opt.Generated == 0 {
		dst = append(dst, head...)
	} else {
		r.event, r.severity = m.event+kind, severityInfo
		if schemas.Refused(e.EventType) {
			r.severity = severityWarn
		}
		n := len(dst)
		dst = x.open(dst, &r)
		if len(x.kinds) < maxKinds && t.at == 0 {
			x.kinds[kind] = append([]byte(nil), dst[n:]...)
		}
	}
	dst = appendKernel(dst, m, &x.kernel, e, x.pid)
	return x.logs.Done(x.shut(dst, &r))
}

// maxKinds bounds the beginnings that are kept: numbers of event types are the archive's.
const maxKinds = 1 << 10

// unnamed counts lines of event types that this release does not know.
func (x *exporter) unnamed(eventType uint32) {
	if _, ok := x.unknown[eventType]; ok || len(x.unknown) < maxKinds {
		x.unknown[eventType]++
		return
	}
	x.unknownMore++
}

// timeLine counts a time, which is in the record of its line.
func (x *exporter) timeLine(t *schemas.TimeEvent) error {
	m, err := x.member(schemas.MemberTimes)
	if err != nil {
		return err
	}
	names := []string{"schema", "run_id", "seq", "type"}
	if t.Type == schemas.TimeAnchor {
		names = append(names, "clock", "wall_clock", "wall_ns", "finished_ns")
	} else {
		names = append(names, "layer", "line", "source", "ns")
	}
	if t.HasEnd {
		names = append(names, "end_ns")
	}
	dropped := 0
	for _, n := range names {
		m.take(n, false, false, &dropped)
	}
	return nil
}

// document takes a document of the archive.
func (x *exporter) document(d archive.Document) error {
	m, err := x.member(d.Member)
	if err != nil || d.Value == nil {
		x.now = nil // the surface is counted at its end
		return err
	}
	r := record{severity: severityInfo}
	switch v := d.Value.(type) {
	case *schemas.Manifest:
		tree, err := object(d.Bytes)
		if err == nil {
			f := fields{m: m, moved: map[string]string{}}
			countManifest(&f, "", tree)
		}
		return err
	case *schemas.Report:
		return x.correlation(m, v)
	default:
		return x.tree(m, d.Bytes, &r)
	}
}

// countManifest counts the fields of the manifest: it makes no record.
func countManifest(f *fields, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, sub := range v {
			at := path + key
			if path == "files." {
				at = path + "*"
			}
			if _, whole := f.m.index[at]; !whole && container(sub) {
				at += "."
			}
			countManifest(f, at, sub)
		}
	case []any:
		for _, e := range v {
			countManifest(f, strings.TrimSuffix(path, ".")+"[].", e)
		}
	default:
		f.m.take(path, v == nil, false, &f.dropped)
	}
}

// correlation makes a record of the report's status, of each binding, of each ambiguity and of each note.
func (x *exporter) correlation(m *member, v *schemas.Report) error {
	head := schemas.Report{Schema: v.Schema, RunID: v.RunID, Status: v.Status, Bindings: nil, Ambiguities: nil}
	f := fields{m: m, moved: map[string]string{}}
	f.append(nil, "", map[string]any{"schema": head.Schema, "run_id": head.RunID, "ambiguities": nil})
	m.counts[m.index["ambiguities"]] = count{mapped: 1}
	if len(v.Notes) > 0 {
		m.counts[m.index["notes"]] = count{mapped: 1}
	}
	r := record{severity: severityInfo, event: m.event}
	dst := f.append(x.open(x.logs.Record(), &r), "", map[string]any{"status": v.Status})
	dst = otlp.Int(otlp.Int(dst, "runner.correlation.bindings.count", int64(len(v.Bindings))), "runner.correlation.ambiguities.count", int64(len(v.Ambiguities)))
	if err := x.logs.Done(x.shut(dst, &r)); err != nil {
		return err
	}
	for i := range v.Bindings {
		b, err := schemas.Marshal(&v.Bindings[i])
		if err != nil {
			return err
		}
		tree, err := object(b)
		if err != nil {
			return err
		}
		r := record{severity: severityInfo, event: m.event + ".binding", call: v.Bindings[i].ToolCallID}
		f.rename = func(to string) string { return to }
		dst := x.open(x.logs.Record(), &r)
		dst = f.append(dst, "bindings[].", tree)
		if err := x.logs.Done(x.shut(dst, &r)); err != nil {
			return err
		}
	}
	for _, code := range v.Ambiguities {
		r := record{severity: severityWarn, event: m.event + ".ambiguity"}
		dst := otlp.Text(x.open(x.logs.Record(), &r), "runner.correlation.ambiguities", code)
		if err := x.logs.Done(x.shut(dst, &r)); err != nil {
			return err
		}
	}
	for _, code := range v.Notes {
		r := record{severity: severityInfo, event: m.event + ".note"}
		dst := otlp.Text(x.open(x.logs.Record(), &r), "runner.correlation.notes", code)
		if err := x.logs.Done(x.shut(dst, &r)); err != nil {
			return err
		}
	}
	return nil
}
