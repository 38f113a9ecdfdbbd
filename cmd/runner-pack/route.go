package main

import (
	"errors"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/stream"
)

// route says where the records of one schema go. The table is in stream order,
// and a record of an earlier row behind one of a later row is an error. A new
// layer is a new row.
type route struct {
	schema string
	member string // "" goes into no member as it is
	take   func(r *router, line []byte) error
}

var routes = []route{
	{schemas.SchemaEvent, bundle.EventsName, (*router).event},
	{schemas.SchemaKernelEvent, bundle.KernelName, (*router).kernelLine},
	{schemas.SchemaPolicyEvent, bundle.PolicyName, (*router).policyLine},
	{schemas.SchemaSDKEvent, bundle.SDKName, (*router).sdkLine},
	{schemas.SchemaSurfaceEntry, bundle.SurfaceName, (*router).surfaceEntry},
	{schemas.SchemaBinding, "", (*router).binding},
	{schemas.SchemaAmbiguity, "", (*router).ambiguity},
	{schemas.SchemaReport, bundle.ReportName, (*router).reportDocument},
	{schemas.SchemaHealth, bundle.HealthName, (*router).healthDocument},
	{schemas.SchemaStageHealth, "", (*router).stageHealth},
}

// router sends every record to its member and checks that the set is whole.
type router struct {
	in      *stream.Reader
	id      string
	members []*member
	byRoute []*member // parallel to routes
	at      int       // row of the last record
	surface *surfaceWriter
	parts   *reportWriter

	events      int
	kernelLines uint64
	policyLines uint64
	sdkLines    uint64
	report      *schemas.Report
	health      *schemas.Health
	stages      []*schemas.StageHealth
}

func newRouter(in *stream.Reader) (*router, error) {
	r := &router{in: in, id: in.Header().RunID, byRoute: make([]*member, len(routes))}
	for i, row := range routes {
		if row.member == "" {
			continue
		}
		m, err := newMember(row.member)
		if err != nil {
			r.close()
			return nil, err
		}
		r.members = append(r.members, m)
		r.byRoute[i] = m
		switch row.member {
		case bundle.SurfaceName:
			r.surface = newSurfaceWriter(m, r.id)
		case bundle.PolicyName:
			if r.parts, err = newReportWriter(m); err != nil {
				r.close()
				return nil, err
			}
		}
	}
	return r, nil
}

func (r *router) close() {
	for _, m := range r.members {
		m.close()
	}
	if r.parts != nil {
		r.parts.close()
	}
}

// read takes the whole input. Without an error it was a whole stream and
// everything the archive needs is there.
func (r *router) read() error {
	for {
		rec, err := r.in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return tool.StreamError(err)
		}
		if rec.Schema != routes[r.at].schema {
			if err := r.turn(rec.Schema); err != nil {
				return r.classify(err)
			}
		}
		if err := routes[r.at].take(r, rec.Bytes); err != nil {
			return r.classify(err)
		}
	}
	if err := r.whole(); err != nil {
		return r.classify(err)
	}
	if err := r.surface.finish(); err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	return nil
}

// classify tells the input's faults from failures to write.
func (r *router) classify(err error) error {
	var form *formError
	if errors.As(err, &form) {
		return tool.StreamError(r.in.Errorf("%s", form.msg))
	}
	return tool.Fail(tool.ExitIO, err)
}

// turn moves to the row of another schema.
func (r *router) turn(schema string) error {
	for i, row := range routes {
		if row.schema != schema {
			continue
		}
		if i < r.at {
			return formf("a %s record stands behind %s", schema, routes[r.at].schema)
		}
		r.at = i
		return nil
	}
	return formf("unknown schema %.80q in a %s stream", schema, schemas.StreamJoined)
}

var newline = []byte{'\n'}

func (r *router) line(line []byte) error {
	m := r.byRoute[r.at]
	if _, err := m.Write(line); err != nil {
		return err
	}
	_, err := m.Write(newline)
	return err
}

func (r *router) kernelLine(line []byte) error {
	r.kernelLines++
	return r.line(line)
}

// policyLine checks what the bindings are compared with.
func (r *router) policyLine(line []byte) error {
	e, err := parse(line, schemas.ParsePolicyEvent)
	if err != nil {
		return err
	}
	return r.layerLine(line, e, e.Schema, e.Seq, &r.policyLines)
}

func (r *router) sdkLine(line []byte) error {
	e, err := parse(line, schemas.ParseSDKEvent)
	if err != nil {
		return err
	}
	return r.layerLine(line, e, e.Schema, e.Seq, &r.sdkLines)
}

func (r *router) layerLine(line []byte, e any, schema string, seq uint64, n *uint64) error {
	if err := canonical(line, e); err != nil {
		return err
	}
	if seq != *n {
		return formf("%s line has seq %d, expected %d", schema, seq, *n)
	}
	*n++
	return r.line(line)
}

// event checks the two run events, which must be exactly these.
func (r *router) event(line []byte) error {
	e, err := parse(line, schemas.ParseEvent)
	switch {
	case err != nil:
		return err
	case r.events > 1:
		return formf("a third run event, expected two")
	case r.events == 0 && e.Started == nil:
		return formf("the first run event is run_finished, expected run_started")
	case r.events == 1 && e.Finished == nil:
		return formf("the second run event is run_started, expected run_finished")
	}
	r.events++
	return r.line(line)
}

// parse makes an error of a parser the input's fault.
func parse[T any](line []byte, f func([]byte) (T, error)) (T, error) {
	v, err := f(line)
	if err != nil {
		err = formf("%v", err)
	}
	return v, err
}

func (r *router) surfaceEntry(line []byte) error { return r.surface.entry(line) }

func (r *router) binding(line []byte) error { return r.parts.binding(line) }

func (r *router) ambiguity(line []byte) error { return r.parts.ambiguity(line) }

func (r *router) reportDocument(line []byte) (err error) {
	if r.report != nil {
		return formf("a second correlation report")
	}
	if r.report, err = parse(line, schemas.ParseReport); err != nil {
		return err
	}
	if err := canonical(line, r.report); err != nil {
		return err
	}
	return r.parts.finish(r.report, r.byRoute[r.at])
}

func (r *router) healthDocument(line []byte) (err error) {
	if r.health != nil {
		return formf("a second observation health")
	}
	if r.health, err = parse(line, schemas.ParseHealth); err != nil {
		return err
	}
	// The line becomes a whole member, so it must be in the contract's byte form.
	if err := canonical(line, r.health); err != nil {
		return err
	}
	_, err = r.byRoute[r.at].Write(line)
	return err
}

func (r *router) stageHealth(line []byte) error {
	h, err := parse(line, schemas.ParseStageHealth)
	if err != nil {
		return err
	}
	r.stages = append(r.stages, h)
	return nil
}

// whole checks that everything is there and nothing was lost since it was joined.
func (r *router) whole() error {
	switch {
	case r.events != 2:
		return formf("%d run events, expected run_started and run_finished", r.events)
	case r.report == nil:
		return formf("no correlation report")
	case r.health == nil:
		return formf("no observation health")
	case len(r.stages) != 3:
		return formf("%d stage healths, expected 3", len(r.stages))
	}
	last := r.stages[2]
	switch {
	case last.Stage != "runner-correlate":
		return formf("the last stage health is of %q, expected runner-correlate", last.Stage)
	case last.Out != r.kernelLines:
		return formf("%s wrote %d kernel lines, the stream has %d", last.Stage, last.Out, r.kernelLines)
	case last.Counters["surface_entries"] != r.surface.n:
		return formf("%s wrote %d surface entries, the stream has %d", last.Stage, last.Counters["surface_entries"], r.surface.n)
	case r.parts.bindings != r.policyLines:
		return formf("%d bindings, the policy layer has %d decisions", r.parts.bindings, r.policyLines)
	}
	for _, c := range []struct {
		counter string
		n       uint64
	}{{"policy_events", r.policyLines}, {"sdk_events", r.sdkLines}} {
		if want := last.Counters[c.counter]; want != c.n {
			return formf("%s counted %d %s, the stream has %d", last.Stage, want, c.counter, c.n)
		}
	}
	return nil
}
