package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/valueset"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
)

// Options are the command line's choices.
type Options struct {
	Require []string // comma lists of key=value
	Assert  []string // jq expressions
	JSON    bool
	Rules   bool // print the rules and nothing else
	Explain bool // say of each tool call what the layers say
}

// verifier checks one archive. Members arrive in archive order, so what comes
// early and follows from something late is kept until the end.
type verifier struct {
	findings
	res    Result
	lim    bundle.Limits
	buf    *bufio.Reader // for lines, made when first needed
	seen   map[string]digested
	whole  map[string][]byte // documents as they are, for assertions
	broken bool              // the container ended before its end

	manifest *schemas.Manifest
	surface  *surfaceFile
	report   *schemas.Report
	health   *schemas.Health
	events   eventPair
	kernel   kernelLayer
	policy   policyLayer
	sdk      sdkLayer
	effects  effectSet
	values   *valueset.Set // what the layers say the surface is
}

// digested is what was measured of a member.
type digested struct {
	size   int64
	sha256 string
}

func newVerifier() *verifier {
	v := &verifier{lim: bundle.DefaultLimits,
		seen: map[string]digested{}, whole: map[string][]byte{}, values: valueset.New()}
	v.policy.byID, v.policy.tools, v.sdk.calls = map[string][]int{}, map[[2]string]bool{}, map[string]*sdkCall{}
	return v
}

func (v *verifier) close() {
	v.values.Close()
	if v.surface != nil {
		v.surface.close()
	}
}

// verify reads the archive and fills in findings and result. Its error is about
// the reading or the machine, never about the archive.
func (v *verifier) verify(ctx context.Context, in io.Reader) error {
	a, err := bundle.Open(in, v.lim)
	if err == nil {
		defer a.Close()
		err = v.members(ctx, a)
	}
	if err != nil {
		return v.containerError(err)
	}
	v.res.Identity = "sha256:" + a.Identity()
	v.memberSet()
	return v.derive()
}

func (v *verifier) members(ctx context.Context, a *bundle.Reader) error {
	for {
		m, r, err := a.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		v.res.Container = "tar"
		if a.Gzip() {
			v.res.Container = "gzip"
		}
		if err := v.member(m, r); err != nil {
			return err
		}
	}
}

// containerError reports what is wrong with the container, or returns err when
// the fault is not the archive's.
func (v *verifier) containerError(err error) error {
	rule := ""
	switch {
	case errors.Is(err, bundle.ErrRead):
		return tool.Fail(tool.ExitIO, err)
	case errors.Is(err, bundle.ErrNotArchive), errors.Is(err, bundle.ErrTruncated), errors.Is(err, bundle.ErrCorrupt):
		rule, v.broken = ruleContainer, true
	case errors.Is(err, bundle.ErrHostile):
		rule = ruleMemberForm
	case errors.Is(err, bundle.ErrOrder):
		rule = ruleOrder
	case errors.Is(err, bundle.ErrLimit):
		rule = ruleLimit
	case errors.Is(err, bundle.ErrTrailing):
		rule = ruleTrailing
	default:
		return tool.Fail(tool.ExitIO, err)
	}
	v.add(rule, "", 0, "%v", err)
	return nil
}

// measured passes a member on and digests it.
type measured struct {
	r   io.Reader
	sum hash.Hash
	n   int64
}

func (m *measured) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.sum.Write(p[:n])
	m.n += int64(n)
	return n, err
}

func (v *verifier) member(m bundle.Member, r io.Reader) error {
	spec, known := schemas.MemberOf(m.Name)
	if !known {
		v.add(ruleUnknown, m.Name, 0, "not a member of an archive of a run")
		return nil
	}
	if limit := spec.MaxBytes; limit > 0 && m.Size > limit {
		v.add(ruleLimit, m.Name, 0, "%d bytes, at most %d", m.Size, limit)
		v.seen[m.Name] = digested{size: -1}
		return nil
	}
	d := &measured{r: r, sum: sha256.New()}
	if err := v.content(spec, d); err != nil {
		return err
	}
	// A handler may stop early; the digest is over everything.
	if _, err := io.Copy(io.Discard, d); err != nil {
		return err
	}
	v.seen[m.Name] = digested{d.n, "sha256:" + hex.EncodeToString(d.sum.Sum(nil))}
	return nil
}

func (v *verifier) content(spec schemas.Form, r io.Reader) error {
	switch spec.Member {
	case bundle.SurfaceName:
		return v.keepSurface(r)
	case bundle.EventsName:
		return v.lines(spec.Member, r, v.eventLine)
	case bundle.KernelName:
		return v.kernelLines(r)
	case bundle.PolicyName:
		return v.lines(spec.Member, r, v.policyLine)
	case bundle.SDKName:
		return v.lines(spec.Member, r, v.sdkLine)
	}
	return v.document(spec, r)
}

// memberSet compares the members that were there with the contract and with the
// manifest.
func (v *verifier) memberSet() {
	for _, spec := range schemas.Members() {
		got, there := v.seen[spec.Member]
		if !there && spec.Optional {
			continue
		}
		if !there {
			v.add(ruleMissing, spec.Member, 0, "the member is missing, even an empty layer must be there")
			continue
		}
		if spec.Member == bundle.ManifestName || v.manifest == nil || got.size < 0 {
			continue
		}
		want, listed := v.manifest.Files[spec.Member]
		if !listed {
			v.add(ruleManifestFiles, bundle.ManifestName, 0, "%s is not listed", spec.Member)
			continue
		}
		switch {
		case want.Bytes != got.size:
			v.add(ruleSize, spec.Member, 0, "%d bytes, the manifest says %d", got.size, want.Bytes)
		case want.SHA256 != got.sha256:
			v.add(ruleDigest, spec.Member, 0, "%s, the manifest says %s", got.sha256, want.SHA256)
		}
	}
	if v.manifest == nil {
		return
	}
	for _, name := range sortedKeys(v.manifest.Files) {
		if _, known := schemas.MemberOf(name); !known || name == bundle.ManifestName {
			v.add(ruleManifestFiles, bundle.ManifestName, 0, "%q is listed, which is no member beside the manifest", name)
		}
	}
}

// sameRun checks a run_id against the archive's, which is that of the first
// document that has one: the manifest's, normally.
func (v *verifier) sameRun(member string, line int, id string) {
	if v.res.RunID == "" {
		v.res.RunID = id
	}
	if id != v.res.RunID {
		v.add(ruleRunID, member, line, "run_id is %q, the archive's is %q", id, v.res.RunID)
	}
}

func run(ctx context.Context, env *tool.Env, opt Options) error {
	if opt.Rules {
		if err := printRules(env.Stdout); err != nil {
			return tool.Fail(tool.ExitIO, err)
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
	v.res.Schema, v.res.Archive = schemaVerifyReport, schemas.Text(name)
	if err := v.verify(ctx, f); err != nil {
		var e *tool.Error
		if errors.As(err, &e) {
			return err
		}
		return tool.Fail(tool.ExitIO, fmt.Errorf("%s: %w", name, err))
	}
	v.summarise()
	if opt.Explain && v.res.Valid {
		v.res.Explanation = v.explain()
	}
	v.demand(ctx, require, assert)
	if err := v.print(env, opt); err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	switch {
	case v.broken:
		return tool.Status(tool.ExitInput)
	case v.total > 0:
		return tool.Status(tool.ExitNo)
	}
	return nil
}
