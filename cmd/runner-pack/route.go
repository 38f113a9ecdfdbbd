package main

import (
	"bytes"
	"errors"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/health"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/stream"
)

// route says where the records of one schema go. The table is in stream order: a
// record of an earlier row after one of a later row is an error.
type route struct {
	schema string
	member string // "": its records are not copied to a member
	layer  *schemas.Layer
	take   func(r *router, line []byte) error
	// document is the parser of a document about the run. Its member is optional.
	document func([]byte) (any, string, error)
}

// newRoutes makes the table: run events, the layers of the layer table, and then what
// runner-correlate derived from them.
func newRoutes() []route {
	routes := []route{{schema: schemas.SchemaEvent, member: schemas.MemberEvents, take: (*router).event}}
	for i := range schemas.Layers {
		l := &schemas.Layers[i]
		routes = append(routes, route{schema: l.Schema, member: l.Member, layer: l, take: (*router).layerLine})
	}
	for _, d := range schemas.RunDocuments {
		routes = append(routes, route{schema: d.Schema, member: d.Member, take: (*router).runDocument, document: d.Parse})
	}
	return append(routes,
		route{schema: schemas.SchemaSurfaceEntry, member: schemas.MemberSurface, take: (*router).surfaceEntry},
		route{schema: schemas.SchemaBinding, take: (*router).binding},
		route{schema: schemas.SchemaAmbiguity, take: (*router).ambiguity},
		route{schema: schemas.SchemaReport, member: schemas.MemberReport, take: (*router).reportDocument},
		route{schema: schemas.SchemaHealth, member: schemas.MemberHealth, take: (*router).healthDocument},
		route{schema: schemas.SchemaStageHealth, take: (*router).stageHealth})
}

// router sends every record to its member, and checks that the stream has everything
// that an archive needs.
type router struct {
	in        *stream.Reader
	id        string
	packs     *schemas.ManifestPacks // for the manifest, or nil
	routes    []route
	members   []*member // parallel to routes; nil: the row has no member, or none yet
	lines     []uint64  // records of each row, parallel to routes
	at        int       // row of the last record
	surface   *surfaceWriter
	processes processes // of the kernel lines
	parts     *reportWriter

	report *schemas.Report
	health *schemas.Health
	stages []*schemas.StageHealth
	files  []bundle.Source // of --record
}

func newRouter(in *stream.Reader) *router {
	r := &router{in: in, id: in.Header().RunID, routes: newRoutes()}
	r.processes.start = len(`{"schema":"`+schemas.SchemaKernelEvent+`","run_id":"`) + len(r.id) + len(`"`)
	r.members, r.lines = make([]*member, len(r.routes)), make([]uint64, len(r.routes))
	for i, row := range r.routes {
		if row.member == "" || row.layer != nil && row.layer.Optional || row.document != nil {
			continue
		}
		r.open(i)
	}
	return r
}

// open creates the member of a row.
func (r *router) open(row int) {
	m := newMember(r.routes[row].member)
	r.members[row] = m
	switch m.name {
	case schemas.MemberSurface:
		r.surface = newSurfaceWriter(m, r.id)
	case schemas.MemberPolicy:
		r.parts = newReportWriter(m)
	}
}

func (r *router) close() {
	for _, m := range r.members {
		if m != nil {
			m.close()
		}
	}
	if r.parts != nil {
		r.parts.close()
	}
}

// layerLines returns the number of lines of a layer.
func (r *router) layerLines(name string) uint64 {
	for i, row := range r.routes {
		if row.layer != nil && row.layer.Name == name {
			return r.lines[i]
		}
	}
	return 0
}

// read reads the whole input. When it returns without an error, the stream was whole
// and has everything that the archive needs.
func (r *router) read() error {
	for {
		rec, err := r.in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return tool.StreamError(err)
		}
		if rec.Schema != r.routes[r.at].schema {
			if err := r.moveTo(rec.Schema); err != nil {
				return r.classify(err)
			}
		}
		if err := r.routes[r.at].take(r, rec.Bytes); err != nil {
			return r.classify(err)
		}
		r.lines[r.at]++
		if row := &r.routes[r.at]; row.layer != nil && row.layer.Parse == nil {
			if err := r.alike(); err != nil {
				return r.classify(err)
			}
		}
	}
	if err := r.checkWhole(); err != nil {
		return r.classify(err)
	}
	if err := r.surface.Finish(); err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	return nil
}

// classify separates faults of the input from failures to write.
func (r *router) classify(err error) error {
	var form *formError
	if errors.As(err, &form) {
		return tool.StreamError(r.in.Errorf("%s", form.msg))
	}
	return tool.Fail(tool.ExitIO, err)
}

// moveTo makes the row of another schema the current one.
func (r *router) moveTo(schema string) error {
	for i, row := range r.routes {
		if row.schema != schema {
			continue
		}
		if i < r.at {
			return formf("a %s record after %s", schema, r.routes[r.at].schema)
		}
		r.at = i
		return nil
	}
	return formf("unknown schema %.80q in a %s stream", schema, schemas.StreamJoined)
}

// line appends a line to the current member. The member of an optional layer is created
// with its first line.
func (r *router) line(line []byte) error {
	if r.members[r.at] == nil {
		r.open(r.at)
	}
	return r.members[r.at].line(line)
}

// layerLine appends a line of a layer. If the layer table has a parser for it, the line
// must be in canonical form and have the next seq.
func (r *router) layerLine(line []byte) error {
	l, n := r.routes[r.at].layer, r.lines[r.at]
	if l.Parse == nil {
		r.processes.add(line)
		return r.line(line)
	}
	e, err := parse(line, l.Parse)
	if err != nil {
		return err
	}
	if err := canonical(line, e.Value); err != nil {
		return err
	}
	if e.Seq != n {
		return formf("%s line has seq %d, expected %d", l.Schema, e.Seq, n)
	}
	return r.line(line)
}

// alike appends the lines that follow a kernel line and are some, too, which is most of the stream.
func (r *router) alike() error {
	lines, n := r.in.Alike(r.processes.add)
	r.lines[r.at] += n
	_, err := r.members[r.at].Write(lines)
	return err
}

// runDocument takes a document about the run.
func (r *router) runDocument(line []byte) error {
	row := &r.routes[r.at]
	if r.lines[r.at] > 0 {
		return formf("a second record of schema %s", row.schema)
	}
	v, id, err := row.document(line)
	switch {
	case err != nil:
		return formf("%v", err)
	case id != r.id:
		return formf("%s is of run %q, expected %q", row.member, id, r.id)
	}
	if err := canonical(line, v); err != nil {
		return err
	}
	r.open(r.at)
	_, err = r.members[r.at].Write(line)
	return err
}

// event checks the run events: run_started, then run_finished.
func (r *router) event(line []byte) error {
	e, err := parse(line, schemas.ParseEvent)
	switch {
	case err != nil:
		return err
	case r.lines[r.at] > 1:
		return formf("a third run event, expected two")
	case r.lines[r.at] == 0 && e.Started == nil:
		return formf("the first run event is run_finished, expected run_started")
	case r.lines[r.at] == 1 && e.Finished == nil:
		return formf("the second run event is run_started, expected run_finished")
	}
	return r.line(line)
}

// parse turns an error of a parser into a fault of the input.
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
	if r.report, err = parse(line, readReport); err != nil {
		return err
	}
	if err := canonical(line, r.report); err != nil {
		return err
	}
	return r.parts.finish(r.report, r.members[r.at])
}

// readReport parses a report in memory that its line bounds.
func readReport(line []byte) (*schemas.Report, error) {
	r, fault, err := schemas.ReadReport(bytes.NewReader(line))
	return r, errors.Join(fault, err)
}

func (r *router) healthDocument(line []byte) (err error) {
	if r.health != nil {
		return formf("a second observation health")
	}
	if r.health, err = parse(line, schemas.ParseHealth); err != nil {
		return err
	}
	// The line becomes a whole member, so it must be in canonical form.
	if err := canonical(line, r.health); err != nil {
		return err
	}
	_, err = r.members[r.at].Write(line)
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

// checkWhole checks that everything is there, and that nothing was lost after
// runner-correlate wrote it.
func (r *router) checkWhole() error {
	switch {
	case r.lines[0] != 2:
		return formf("%d run events, expected run_started and run_finished", r.lines[0])
	case r.report == nil:
		return formf("no correlation report")
	case r.health == nil:
		return formf("no observation health")
	case r.parts.bindings != r.layerLines(schemas.LayerPolicy):
		return formf("%d bindings, the policy layer has %d decisions", r.parts.bindings, r.layerLines(schemas.LayerPolicy))
	}
	if err := r.checkStages(); err != nil {
		return err
	}
	last := r.stages[len(health.Sources)]
	if n := last.Counters[schemas.CounterSurfaceEntries]; n != r.surface.Len() {
		return formf("%s wrote %d surface entries, the stream has %d", last.Stage, n, r.surface.Len())
	}
	for i, row := range r.routes {
		if row.layer == nil {
			continue
		}
		want, what := last.Out, "kernel_lines"
		if c := row.layer.Counter; c != "" {
			want, what = last.Counters[c], c
		}
		if want != r.lines[i] {
			return formf("%s counted %d %s, the stream has %d", last.Stage, want, what, r.lines[i])
		}
	}
	return nil
}
