package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/evidence"
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
	r, err := collect(ctx, e, opt.Predicate == attestation.RuntimeTrace)
	if err != nil {
		return err
	}
	if len(env.Args) == 0 || env.Args[0] == "-" {
		r.Name = "archive.tar.gz"
	}
	statement, err := attestation.New(r, opt.Predicate)
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	b, err := schemas.Marshal(statement)
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	sealed := attestation.Seal(b)
	if opt.Add != nil {
		if err := joins(opt.Add, r); err != nil {
			return tool.Failf(tool.ExitInput, "--add %s: %w", env.Flag.String("add"), err)
		}
		sealed = opt.Add
	}
	if err := sign(sealed, opt.Keys); err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	line, err := sealed.Line(opt.Sigstore)
	if err == nil && len(line) > attestation.MaxFile {
		err = fmt.Errorf("the attestation has %d bytes, at most %d are read again: leave the files out with --predicate %s", len(line), attestation.MaxFile, predicateRun)
	}
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	return env.WriteOutput(opt.Output, tool.Bytes(line))
}

// sign adds the signatures that the envelope does not have yet.
func sign(e *attestation.Envelope, keys []*attestation.PrivateKey) error {
	for _, k := range keys {
		p, err := k.Public()
		if err != nil {
			return err
		}
		if len(e.Signers([]*attestation.PublicKey{p})) == 1 {
			continue
		}
		if err := e.Sign(k); err != nil {
			return err
		}
	}
	return nil
}

// joins reports why a signature may not be added to an envelope: who signs must mean what it says.
func joins(add *attestation.Envelope, r *attestation.Run) error {
	s, err := attestation.ParseStatement(add)
	if err != nil {
		return err
	}
	return s.Check(r)
}

// collect reads what a statement says of an archive.
func collect(ctx context.Context, e *evidence.Evidence, surface bool) (*attestation.Run, error) {
	r := attestation.NewReader(surface)
	if err := e.Read(ctx, archive.Visitor{Document: r.Document, SurfaceValue: r.SurfaceValue, Line: r.Line, End: r.End}); err != nil {
		return nil, err
	}
	return r.Run(schemas.Text(filepath.Base(e.Name)), e.Digest, e.Report), nil
}
