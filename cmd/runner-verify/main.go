// Runner-verify says whether an archive is a whole and honest record: its form,
// its digests, and everything in it that follows from something else in it. It is
// the one stage that judges.
package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-verify checks the archive of a run. It is the one gate.

Usage:
  runner-verify [flags] [FILE]

It reads an archive, .tar.gz or .tar, from FILE or standard input. It checks form
and digests, derives surface, counts and correlation again from the layers, and
compares. Of a valid archive it prints verdict and surface; findings go to stderr.

Flags:
  --require K=V,…  demand more: kernel=complete drops=0 cgroup=clean events>0
                   policy=present correlation=clean origin=runner … (a wrong key lists them all)
  --assert EXPR    demand that a jq program gives true over {run, kernel, effects, counts, policy, sdk,
                   processes, filtered, surface, health, report, manifest}; layers are arrays
  --attestation F  demand that F has true statements, signed by each (or --threshold N)
                   --public-key FILE
  --explain        explain each tool call by SDK, policy and kernel; list surface and refusals
  --json           write one JSON document instead of text
  --rules          list the rules and exit
  -v               print what the record claims and never claims, and all its notes
  -h, --help       print this help; --version prints the version

Exit codes:
  0 valid, all demands met   1 not valid, or a demand not met   2 wrong call
  3 not a whole archive      5 reading or writing failed

Examples:
  runner-verify run.tar.gz
  runner-verify --require kernel=complete,drops=0,cgroup=clean run.tar.gz
  runner-verify --assert 'all(.kernel[]; .value | tostring | contains("/.ssh/") | not)' run.tar.gz
`

func app() tool.App {
	return tool.App{
		Name: "runner-verify", Usage: usage,
		Flags: []cli.Flag{&cli.StringSliceFlag{Name: "require"}, &cli.StringSliceFlag{Name: "assert"},
			&cli.StringFlag{Name: "attestation"}, &cli.StringSliceFlag{Name: "public-key"}, &cli.IntFlag{Name: "threshold"},
			&cli.BoolFlag{Name: "json"}, &cli.BoolFlag{Name: "explain"}, &cli.BoolFlag{Name: "rules"}, &cli.BoolFlag{Name: "v"}},
		Run: func(ctx context.Context, env *tool.Env) error {
			attested, err := parseAttestation(env)
			if err != nil {
				return err
			}
			return run(ctx, env, Options{Attested: attested, Require: env.Flag.StringSlice("require"),
				Assert: env.Flag.StringSlice("assert"), JSON: env.Flag.Bool("json"), Explain: env.Flag.Bool("explain"), Rules: env.Flag.Bool("rules"), Details: env.Flag.Bool("v")})
		},
	}
}

func main() {
	boundMemory()
	tool.CollectLate(100)
	tool.Main(app())
}
