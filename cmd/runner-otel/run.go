package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/evidence"
	"github.com/runner-evidence/runner/cmd/internal/otlp"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

func run(ctx context.Context, env *tool.Env, opt Options) error {
	e, err := evidence.Open(ctx, env)
	if err != nil {
		return err
	}
	defer e.Close()
	out, err := newOutputs(ctx, env, e, opt)
	if err != nil {
		return err
	}
	defer out.abort()
	x, err := export(ctx, e, opt, out)
	if err != nil {
		return err
	}
	if err := out.commit(x); err != nil {
		return err
	}
	t := x.totals()
	lost := ""
	for _, r := range t.reasons() {
		lost += fmt.Sprintf(", %d %s", t.dropped[r], r)
	}
	answer := fmt.Sprintf("%d spans, %d log records; %d fields: %d mapped%s\n", x.traces.Records, x.logs.Records, t.in, t.mapped, lost)
	if out.sent != nil {
		answer += out.sent.answer()
	}
	if err := env.WriteOutput("-", tool.Bytes([]byte(answer))); err != nil {
		return err
	}
	return out.verdict(env)
}

// exporter makes the records of an archive.
type exporter struct {
	opt     Options
	e       *evidence.Evidence
	trace   otlp.Trace
	clock   *clock
	members map[string]*member
	now     *member // whose lines are read
	kernel  kernelFields
	pid     string
	kinds   map[string][]byte // beginnings of kernel records
	calls   map[string]*call
	order   []*call
	traces  otlp.Batcher
	logs    otlp.Batcher
	unknown map[uint32]uint64 // kernel lines of event types that have no name here

	unknownMore uint64 // those of types beyond maxKinds
}

// export reads the archive and sends its records.
func export(ctx context.Context, e *evidence.Evidence, opt Options, out *outputs) (*exporter, error) {
	x := &exporter{opt: opt, e: e, trace: opt.Trace, members: map[string]*member{}, kinds: map[string][]byte{}, unknown: map[uint32]uint64{}, pid: attrPID}
	if x.trace.ID == "" {
		x.trace = otlp.TraceOf(e.Report.RunID)
	}
	if slices.ContainsFunc(e.Report.Record.Notes, func(n string) bool { return strings.HasPrefix(n, schemas.NotePIDs.Code) }) {
		x.pid = "runner.process.number" // it is no pid
	}
	resource := x.resource()
	x.traces = otlp.Batcher{Signal: otlp.Traces, Resource: resource, Send: out.traces.send}
	x.logs = otlp.Batcher{Signal: otlp.Logs, Resource: resource, Send: out.logs.send}
	x.collectCalls()
	var err error
	if x.clock, err = newClock(ctx, e); err == nil {
		err = e.Read(ctx, archive.Visitor{Document: x.document, SurfaceValue: nil, Line: x.line, End: x.end})
	}
	x.clock.stop()
	if err == nil {
		err = x.logs.Flush()
	}
	if err == nil {
		err = x.spans()
	}
	if err == nil {
		err = out.drain()
	}
	return x, err
}

// resource says of every request what run it is of, and how well that was observed.
func (x *exporter) resource() (b []byte) {
	r := x.e.Report.Record
	b = otlp.Text(b, "service.name", "runner")
	b = otlp.Text(b, attrRun, x.e.Report.RunID)
	b = otlp.Text(b, "runner.archive.identity", x.e.Report.Identity)
	b = otlp.Text(b, "runner.origin", r.Origin)
	b = otlp.Text(b, "runner.health.platform", r.Platform)
	b = otlp.Text(b, "runner.health.kernel_layer", r.KernelLayer)
	b = otlp.Text(b, "runner.health.policy_layer", r.PolicyLayer)
	b = otlp.Text(b, "runner.health.sdk_layer", r.SDKLayer)
	b = otlp.Text(b, "runner.health.cgroup_correlation", r.CgroupCorrelation)
	b = otlp.Text(b, "runner.correlation.status", r.Correlation)
	b = otlp.Uint(b, "runner.health.ringbuf_drops", r.RingbufDrops)
	return otlp.Int(b, "runner.health.notes.count", int64(len(r.Notes)))
}

// member begins a member: its records are in a scope of their own.
func (x *exporter) member(name string) (*member, error) {
	if x.now != nil && x.now.member == name {
		return x.now, nil
	}
	x.now = newMember(name)
	x.members[name] = x.now
	if name == schemas.MemberKernel {
		x.kernel = newKernelFields(x.now)
	}
	if x.now.event == "" {
		return x.now, nil
	}
	return x.now, x.logs.Scope("runner-otel", tool.Version(), x.scope(otlp.Text(nil, "runner.member", name)))
}

// scope adds the conventions that the names are of.
func (x *exporter) scope(b []byte) []byte {
	b = otlp.Text(b, "runner.semconv.repository", semconvRepository)
	return otlp.Text(b, "runner.semconv.commit", semconvCommit)
}

// end counts the fields of a member whose values come one by one.
func (x *exporter) end(m archive.Member) error {
	if m.Name != schemas.MemberSurface {
		return nil
	}
	s, err := x.member(m.Name)
	for i := range s.rules {
		dropped := 0
		s.take(s.rules[i].field, false, false, &dropped)
	}
	return err
}
