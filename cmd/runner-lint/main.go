// Runner-lint judges an archive by packs of rules. It says what the archive has of the signals that they
// require, and how much of what a replay needs is in it.
package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/pack"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-lint judges an archive by packs of rules.

Usage:
  runner-lint [flags] [FILE]

It reads an archive and refuses what runner-verify refuses. Each rule of each pack
holds, is violated, or cannot be decided by what the archive has; what does not hold
is a finding. Then: what is there of the signals that the packs require, and how
much of what a replay needs (closure).

Flags:
  --pack NAME      a pack of the program, or a YAML file; repeat for several
                   (default cicd-starter)
  --packs, --signals  list the packs of the program; the signals of the registry
  --fail-on LEVEL  exit 1 at a finding of error (default), warning or info, or above
  --explain WHAT   closure.score, or a rule: PACK:RULE
  --json           write the report as JSON instead of text
  --report FILE    write it to FILE too: lint-report-v1 (schemas/PACKS.md)
  --closure FILE   write completeness and closure: closure-v1
  --sarif FILE, --junit FILE   write the findings for GitHub, or for a CI system
  --force, --generated-at TIME  replace a FILE that is no such report; for the reports
  -h, --help       print this help; --version prints the version

Exit codes:
  0 no such finding   1 findings   2 wrong call   3 not a valid archive or pack
  5 reading or writing failed

Examples:
  runner-lint run.tar.gz
  runner-lint --pack agent-baseline --pack ./own.yaml --fail-on warning run.tar.gz
`

func app() tool.App {
	return tool.App{
		Name: "runner-lint", Usage: usage,
		Flags: []cli.Flag{&cli.StringSliceFlag{Name: "pack"}, &cli.BoolFlag{Name: "packs"}, &cli.BoolFlag{Name: "signals"},
			&cli.StringFlag{Name: "fail-on", Value: pack.Error.String()}, &cli.StringFlag{Name: "explain"},
			&cli.BoolFlag{Name: "json"}, &cli.StringFlag{Name: "report"}, &cli.StringFlag{Name: "closure"}, &cli.StringFlag{Name: "sarif"}, &cli.StringFlag{Name: "junit"}, &cli.BoolFlag{Name: "force"},
			&cli.StringFlag{Name: "generated-at"}},
		Run: func(ctx context.Context, env *tool.Env) error {
			opt, err := options(env)
			if err != nil {
				return err
			}
			return run(ctx, env, opt)
		},
	}
}

func main() { tool.Main(app()) }
