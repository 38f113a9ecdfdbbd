package main

import (
	"crypto/sha256"
	"encoding/hex"
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
	run       attestation.Run
	sum       hash.Hash // of the archive's bytes
	trace     bool      // a statement may list the surface
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
	if err := a.readKeys(names); err != nil {
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
	for _, e := range a.envelopes {
		if s, err := attestation.ParseStatement(e); err == nil && s.PredicateType == attestation.RuntimeTrace {
			a.trace, a.run.Surface = true, map[string][]string{}
		}
	}
	return a, nil
}

// readKeys reads the keys. One that is given twice counts once.
func (a *attested) readKeys(names []string) error {
	seen := map[string]bool{}
	for _, name := range names {
		b, err := tool.ReadFile(name, attestation.MaxKey)
		if err != nil {
			return err
		}
		k, err := attestation.ParsePublic(b)
		if err != nil {
			return tool.Failf(tool.ExitInput, "--public-key %s: %w", name, err)
		}
		if !seen[k.String()] {
			a.keys = append(a.keys, k)
		}
		seen[k.String()] = true
	}
	return nil
}

// digested reads an archive and digests its bytes.
func (a *attested) digested(r io.Reader) io.Reader {
	if a == nil {
		return r
	}
	return io.TeeReader(r, a.sum)
}

// document keeps what a statement has of a document.
func (a *attested) document(d archive.Document) {
	if a == nil {
		return
	}
	if m, is := d.Value.(*schemas.Manifest); is {
		sum := sha256.Sum256(d.Bytes)
		a.run.Files, a.run.Manifest = m.Files, "sha256:"+hex.EncodeToString(sum[:])
	}
}

func (v *verifier) surfaceValue(set int, value []byte) error {
	if a := v.attested; a != nil && a.trace {
		name := schemas.SurfaceSets[set]
		a.run.Surface[name] = append(a.run.Surface[name], string(value))
	}
	return v.surface.add(set, value)
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
	a.run.Bytes, a.run.Identity, a.run.Health = "sha256:"+hex.EncodeToString(a.sum.Sum(nil)), v.res.Identity, v.health
	a.run.Name, a.run.RunID, a.run.Record = schemas.Text(filepath.Base(v.res.Archive)), v.res.RunID, v.res.Record
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
		err = s.Check(&a.run)
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
