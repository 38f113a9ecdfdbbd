// Runner-attest signs a statement about the archive of a run: what it is, by digests, and how well
// the run was observed.
package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/attestation"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-attest signs what an archive is and how well its run was observed.

Usage:
  runner-attest --key KEY [flags] [FILE]
  runner-attest --generate-key KEY [--algorithm NAME]

It reads an archive and refuses what runner-verify refuses. It writes an in-toto
statement in a DSSE envelope, one line (.intoto.jsonl). runner-verify --attestation
checks it offline, and compares what it says with the archive.

Flags:
  --key FILE        sign with this private key, in PEM: ed25519 or P-256; repeat for several
  -o, --output FILE write to FILE; "-", the default, is standard output
  --add FILE        add the signature to this envelope, if it says the same of the archive
  --predicate NAME  measured-run: digests, health, packs, closure (default)
                    runtime-trace: what in-toto defines: programs, endpoints, files
  --format NAME     dsse (default) or sigstore-bundle
  --force           replace an existing FILE that is not an attestation
  --generate-key FILE  make a private key in FILE and the public one in FILE.pub
  --algorithm NAME  of that key: ed25519 (default) or p256
  -h, --help        print this help; --version prints the version

Exit codes:
  0 written   2 wrong call   3 not a valid archive, key or envelope   5 reading or writing failed

Examples:
  runner-attest --generate-key ci.pem
  runner-attest --key ci.pem run.tar.gz >run.intoto.jsonl
  runner-verify --attestation run.intoto.jsonl --public-key ci.pem.pub run.tar.gz
`

func app() tool.App {
	return tool.App{
		Name: "runner-attest", Usage: usage,
		Flags: []cli.Flag{&cli.StringSliceFlag{Name: "key"}, &cli.StringFlag{Name: "o", Aliases: []string{"output"}, Value: "-"},
			&cli.StringFlag{Name: "add"}, &cli.StringFlag{Name: "predicate", Value: predicateRun}, &cli.StringFlag{Name: "format", Value: formatDSSE},
			&cli.BoolFlag{Name: "force"}, &cli.StringFlag{Name: "generate-key"}, &cli.StringFlag{Name: "algorithm", Value: attestation.Ed25519}},
		Run: func(ctx context.Context, env *tool.Env) error {
			if env.Flag.IsSet("generate-key") {
				return generate(env)
			}
			opt, err := options(env)
			if err != nil {
				return err
			}
			return run(ctx, env, opt)
		},
	}
}

func main() { tool.Main(app()) }
