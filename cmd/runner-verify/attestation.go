package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/archive"
)

// attested is the demand of --attestation: statements, and who must have signed them.
type attested struct {
	file      string
	envelopes []*attestation.Envelope
	keys      []*attestation.PublicKey
	threshold int
	reader    *attestation.Reader
	run       *attestation.Run // once all was read
	sum       hash.Hash        // of the archive's bytes
	met       bool
	says      []string // for people, of each statement that holds
}

// String is the demand as a report has it.
func (a *attested) String() string {
	return fmt.Sprintf("attestation %s by %d of %d keys", schemas.Text(a.file), a.threshold, len(a.keys))
}

// parseAttestation reads the statements and keys, before the archive.
func parseAttestation(env *tool.Env) (*attested, error) {
	if err := env.NotEmpty("attestation"); err != nil {
		return nil, err
	}
	a := &attested{file: env.Flag.String("attestation"), threshold: env.Flag.Int("threshold"), sum: sha256.New()}
	names := env.Flag.StringSlice("public-key")
	switch {
	case a.file == "" && (len(names) > 0 || env.Flag.IsSet("threshold")):
		return nil, tool.Missing("--attestation", "runner-verify --attestation run.intoto.jsonl --public-key KEY.pub run.tar.gz")
	case a.file == "":
		return nil, nil
	case len(names) == 0:
		return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("--public-key is missing: without a key, an attestation says nothing"), "runner-verify --attestation "+a.file+" --public-key KEY.pub run.tar.gz")
	}
	var err error
	if a.keys, err = attestation.ReadPublic(names); err != nil {
		return nil, err
	}
	if !env.Flag.IsSet("threshold") {
		a.threshold = len(a.keys)
	}
	if a.threshold < 1 || a.threshold > len(a.keys) {
		return nil, tool.BadValue("threshold", fmt.Sprint(a.threshold), fmt.Sprintf("1 to %d, the number of different keys", len(a.keys)))
	}
	b, err := tool.ReadFile(a.file, attestation.MaxFile)
	if err != nil {
		return nil, err
	}
	if a.envelopes, err = attestation.Parse(b); err != nil {
		return nil, tool.Failf(tool.ExitInput, "--attestation %s: %w", a.file, err)
	}
	surface := false
	for _, e := range a.envelopes {
		s, err := attestation.ParseStatement(e)
		surface = surface || err == nil && s.PredicateType == attestation.RuntimeTrace
	}
	a.reader = attestation.NewReader(surface)
	return a, nil
}

// digested reads an archive and digests its bytes.
func (a *attested) digested(r io.Reader) io.Reader {
	if a == nil {
		return r
	}
	return io.TeeReader(r, a.sum)
}

// visitor lets the reader of the attestation see what the verifier sees.
func (a *attested) visitor(v archive.Visitor) archive.Visitor {
	if a == nil {
		return v
	}
	own := v
	v.Document = func(d archive.Document) error { return cmp.Or(a.reader.Document(d), own.Document(d)) }
	v.SurfaceValue = func(set int, value []byte) error {
		return cmp.Or(a.reader.SurfaceValue(set, value), own.SurfaceValue(set, value))
	}
	v.Line = func(l *archive.Line) error { return cmp.Or(a.reader.Line(l), own.Line(l)) }
	v.End = func(m archive.Member) error { return cmp.Or(a.reader.End(m), own.End(m)) }
	return v
}

// attest checks the demanded attestation. Each statement of the file must hold.
func (v *verifier) attest(archive io.Reader) error {
	a := v.attested
	if a == nil {
		return nil
	}
	if _, err := io.Copy(a.sum, archive); err != nil { // what comes after the archive
		return err
	}
	if !v.res.Valid {
		v.add(ruleAttestation, "", 0, "%s: nothing is compared with an archive that is not valid", schemas.Text(a.file))
		return nil
	}
	a.run = a.reader.Run(schemas.Text(filepath.Base(v.res.Archive)), schemas.DigestFrom(a.sum), &v.res)
	a.met = true
	for i, e := range a.envelopes {
		if err := a.holds(e); err != nil {
			a.met = false
			v.add(ruleAttestation, "", 0, "%s, statement %d: %v", schemas.Text(a.file), i+1, err)
		}
	}
	return nil
}

func (a *attested) holds(e *attestation.Envelope) error {
	signed := e.Signers(a.keys)
	if len(signed) < a.threshold {
		return fmt.Errorf("signed by %d of the %d keys, expected at least %d: it was signed by another key, or changed afterwards", len(signed), len(a.keys), a.threshold)
	}
	s, err := attestation.ParseStatement(e)
	if err == nil {
		err = s.Check(a.run)
	}
	if err != nil {
		return err
	}
	var names []string
	for _, k := range signed {
		names = append(names, k.String())
	}
	a.says = append(a.says, fmt.Sprintf("attested  as %s by %s", s.PredicateType, strings.Join(names, ", ")))
	return nil
}
