package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// Values of --predicate and --format.
const (
	predicateRun   = "measured-run"
	predicateTrace = "runtime-trace"
	formatDSSE     = "dsse"
	formatSigstore = "sigstore-bundle"
)

// Options are the command line's choices.
type Options struct {
	Keys      []*attestation.PrivateKey
	Add       *attestation.Envelope // or nil
	Predicate string                // type
	Sigstore  bool
	Output    string
}

func options(env *tool.Env) (opt Options, err error) {
	if err := env.NotEmpty("o", "add"); err != nil {
		return opt, err
	}
	if env.Flag.IsSet("algorithm") {
		return opt, tool.Usagef("--algorithm belongs to --generate-key: a key that exists has its own")
	}
	predicate, err := env.Word("predicate", predicateRun, predicateTrace)
	if err != nil {
		return opt, err
	}
	opt.Predicate = map[string]string{predicateRun: attestation.MeasuredRun, predicateTrace: attestation.RuntimeTrace}[predicate]
	format, err := env.Word("format", formatDSSE, formatSigstore)
	if err != nil {
		return opt, err
	}
	opt.Sigstore, opt.Output = format == formatSigstore, env.Flag.String("o")
	names := env.Flag.StringSlice("key")
	if len(names) == 0 {
		return opt, tool.Missing("--key", "make a key with runner-attest --generate-key ci.pem, then runner-attest --key ci.pem run.tar.gz")
	}
	for _, name := range names {
		k, err := attestation.ReadPrivate(env, name)
		if err != nil {
			return opt, err
		}
		opt.Keys = append(opt.Keys, k)
	}
	if add := env.Flag.String("add"); add != "" {
		if opt.Add, err = oneEnvelope(add); err != nil {
			return opt, err
		}
	}
	if opt.Output != "-" {
		err = tool.Replaceable(env.Flag.Bool("force"), opt.Output, "an attestation", attestation.IsFile)
	}
	return opt, err
}

func oneEnvelope(name string) (*attestation.Envelope, error) {
	b, err := tool.ReadFile(name, attestation.MaxFile)
	if err != nil {
		return nil, err
	}
	list, err := attestation.Parse(b)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("%d envelopes, expected one", len(list))
	}
	if err != nil {
		return nil, tool.Failf(tool.ExitInput, "%s: %w", name, err)
	}
	return list[0], nil
}

// generate makes a key. It replaces none: what was signed with a lost key can never be signed again.
func generate(env *tool.Env) error {
	for _, other := range []string{"key", "add", "predicate", "format", "o", "force"} {
		if env.Flag.IsSet(other) {
			return tool.Usagef("--generate-key and --%s: expected one of them", other)
		}
	}
	if err := cmp.Or(env.NotEmpty("generate-key"), env.NoOperands()); err != nil {
		return err
	}
	algorithm, err := env.Word("algorithm", attestation.Ed25519, attestation.P256)
	if err != nil {
		return err
	}
	name := env.Flag.String("generate-key")
	for _, file := range []string{name, name + ".pub"} {
		if _, err := os.Lstat(file); err == nil {
			return tool.Fail(tool.ExitUsage, fmt.Errorf("%s exists: it is kept", file), "give another name, or remove it yourself")
		}
	}
	k, err := attestation.Generate(algorithm)
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	p, err := k.Public()
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	private, err := k.PEM()
	public, err2 := p.PEM()
	if err := cmp.Or(err, err2); err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	if err := create(name, private, 0o600); err != nil {
		return err
	}
	if err := create(name+".pub", public, 0o666); err != nil {
		os.Remove(name)
		return err
	}
	env.Sayf("%s is secret; who verifies needs %s.pub: %s", name, name, p)
	return nil
}

// create writes a file that does not exist yet, or leaves none.
func create(name string, b []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return tool.CannotWrite(name, err)
	}
	_, err = io.Copy(f, bytes.NewReader(b))
	if err = cmp.Or(err, tool.GiveToInvoker(f), f.Sync(), f.Close()); err != nil {
		os.Remove(name)
		return tool.CannotWrite(name, err)
	}
	return nil
}
