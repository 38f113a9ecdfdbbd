package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/assertion"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// Options are the command line's choices.
type Options struct {
	Require []string // comma lists of key=value
	Assert  []string // jq expressions
	JSON    bool
	Rules   bool // print the rules and nothing else
	Explain bool // say of each tool call what the layers say
	Details bool // print claims and all notes

	Attested *attested // nil without --attestation
}

// verifier checks one archive. Members arrive in archive order, so what comes
// early and follows from something late is kept until the end.
type verifier struct {
	findings
	res                  verdict.Report
	lim                  bundle.Limits
	members              map[string]archive.Member // those that were read to their end
	collected            *assertion.Collector      // what assertions see
	complete, notArchive bool                      // as archive.Summary says

	surface surfaceValues
	report  *schemas.Report
	health  *schemas.Health
	events  runEvents
	kernel  kernelLayer
	policy  policyLayer
	sdk     sdkLayer
	intents schemas.IntentKeys
	times   timesLayer
	reduced reduction

	wrapped  wrappedLayers
	filtered filteredLayer
	process  processLayer
	attested *attested // nil if no attestation is demanded

	words    map[string]string                // that many lines have
	joined   map[string]int                   // of the report, made when first needed: the SDK's id → the place of the binding
	codes    *codeSet                         // of the report, made when first needed
	noteSets map[string]*noteSet              // of the health, made when first needed
	err      error                            // of the machine, met by a check
	again    []byte                           // a line as this runner writes it
	active   []func(*verifier, *archive.Line) // the rules for lines of the member being read
	layered  string                           // that member
}

func newVerifier() *verifier {
	v := &verifier{lim: bundle.DefaultLimits, members: map[string]archive.Member{}, words: map[string]string{}, intents: schemas.IntentKeys{}, collected: assertion.Collect(nil)}
	v.surface.init()
	v.policy.byID, v.policy.tools, v.policy.policies, v.sdk.calls = map[string][]int{}, map[[2]string]bool{}, map[string]bool{}, map[string]*sdkCall{}
	return v
}

func (v *verifier) close() {
	v.surface.close()
	v.reduced.close()
	v.times.windows.close()
	v.process.kernel.close()
}

// verify reads the archive and fills in findings and result. Its error is about
// the reading or the machine, never about the archive.
func (v *verifier) verify(ctx context.Context, in io.Reader) error {
	sum, err := archive.ReadWithin(ctx, in, v.lim, v.visitor())
	return v.conclude(sum, err)
}

// conclude checks what follows from several members, once all were visited.
func (v *verifier) conclude(sum archive.Summary, err error) error {
	v.res.Container, v.res.RunID, v.res.Identity = sum.Container, sum.RunID, sum.Identity
	v.complete, v.notArchive = sum.Complete, sum.NotArchive
	if err != nil || !sum.Complete {
		return err
	}
	if err := v.derive(); err != nil || v.total > 0 {
		return err
	}
	v.res.IdentityWithoutTimes, err = v.reduced.identity(sum.RunID)
	return err
}

func (v *verifier) visitor() archive.Visitor {
	return v.attested.visitor(archive.Visitor{
		Finding:      func(f archive.Finding) { v.add(f.Rule, f.Member, f.Line, "%s", f.Message) },
		Schema:       schemaProblems,
		Document:     v.document,
		SurfaceValue: v.surface.add,
		Line:         v.line,
		End:          v.end,
		Bytes:        v.bytes,
	})
}

func (v *verifier) document(d archive.Document) error {
	v.collected.Document(d)
	switch value := d.Value.(type) {
	case *schemas.Manifest:
		v.reduced.expect(value)
		v.wrapped.expect(value)
	case *schemas.Report:
		v.report = value
	case *schemas.Health:
		v.health = value
	default:
		v.wrapped.document(d.Value)
	}
	return nil
}

// bytes takes the bytes of a member that something needs as they are.
func (v *verifier) bytes(member string) io.Writer {
	list, rest := v.wrapped.blob(member), v.reduced.member(member)
	switch {
	case list == nil:
		return rest
	case rest == nil:
		return list
	}
	return io.MultiWriter(list, rest)
}

// line takes one line into account and then checks it by the rules for its member.
// The run's events wait: what they say decides by which rules they are checked.
func (v *verifier) line(l *archive.Line) error {
	kept := true
	v.collected.Line(l)
	var err error
	switch e := l.Event.(type) {
	case *schemas.KernelEvent:
		err = v.addKernel(e)
		v.wrapped.kernel(e)
	case *schemas.PolicyEvent:
		kept, err = v.addPolicy(l, e)
	case *schemas.SDKEvent:
		v.addSDK(l, e)
	case *schemas.RunStarted, *schemas.RunFinished:
		event := *l
		event.Bytes, kept = bytes.Clone(l.Bytes), false
		v.events.add(event)
	}
	if kept && err == nil {
		v.check(l)
	}
	if err == nil && v.total >= archive.MaxFindings {
		err = archive.ErrTooMany
	}
	return err
}

// check runs the rules for the lines of a member.
func (v *verifier) check(l *archive.Line) {
	if l.Member != v.layered {
		v.layered, v.active = l.Member, lineConditions(l.Member, v.writtenByRunner())
	}
	for _, f := range v.active {
		f(v, l)
	}
}

// end closes a member.
func (v *verifier) end(m archive.Member) error {
	v.members[m.Name] = m
	v.reduced.end(m)
	switch m.Name {
	case bundle.EventsName:
		for i := range v.events.list {
			v.check(&v.events.list[i])
		}
		if v.writtenByRunner() {
			v.kernel.effects.expect(v.report)
		}
	case bundle.SurfaceName:
		v.surface.whole = m.Whole
	}
	v.runConditions(func(c condition) bool { return c.member == m.Name })
	return nil
}

func run(ctx context.Context, env *tool.Env, opt Options) error {
	if opt.Rules {
		if err := printRules(env.Stdout); err != nil {
			return tool.CannotWrite("standard output", err)
		}
		return nil
	}
	require, err := parseRequirements(opt.Require)
	if err != nil {
		return err
	}
	assert, err := parseAssertions(opt.Assert)
	if err != nil {
		return err
	}
	f, name, err := tool.OpenInput(env)
	if err != nil {
		return err
	}
	defer f.Close()
	v := newVerifier()
	defer v.close()
	v.attested = opt.Attested
	v.collected = assertion.Collect(assert)
	v.res.Schema, v.res.Archive = schemas.SchemaVerifyReport, schemas.Text(name)
	in, read := v.attested.digested(f), sha256.New()
	if opt.Explain {
		in = io.TeeReader(in, read)
	}
	if err := v.verify(ctx, in); err != nil {
		return tool.Fail(tool.ExitIO, readingError(name, err))
	}
	v.summarise()
	if opt.Explain && v.res.Valid {
		v.res.Explanation, v.res.ArchiveDigest = v.explain(), schemas.DigestFrom(read)
	}
	if err := v.attest(f); err != nil {
		return tool.Fail(tool.ExitIO, readingError(name, err))
	}
	v.demand(ctx, require, assert)
	if err := v.print(env, opt); err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	switch {
	case v.notArchive:
		return tool.Said(tool.ExitInput)
	case v.total > 0:
		return tool.Status(tool.ExitNo)
	}
	return nil
}

// readingError names the archive, except where the message says that reading it
// failed: that one names it already.
func readingError(name string, err error) error {
	if errors.Is(err, bundle.ErrRead) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}
