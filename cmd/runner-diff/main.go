// Runner-diff compares what runs did: archives with archives, or with a lock file.
package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-diff says what a run did that others did not.

Usage:
  runner-diff [flags] [BASE] NEW
  runner-diff --write-lock FILE RUN...

It reads archives and refuses what runner-verify refuses.

Flags:
  --base FILE         a baseline; repeat for several: an item carries in how many it is
  --lock FILE         compare with a lock file: text to commit and review
  --write-lock FILE   write one
  --update-lock FILE  add to it what is new in NEW
  --fold RULE         for names that differ in each run: a rule of --folds, or none, or
                      NAME=FOLDER (workspace=$PWD, job=/tmp/job.*); repeat; default: all rules
  --ignore FILE       rules about what to ignore, in YAML or JSON (schemas/DIFF.md)
  --fail-on GROUPS    exit 1 only for these, with commas: exec network write-outside tool
                      decision blocked write other read removed; none; default: all
  --format NAME       text (default), markdown, sarif, junit or json
  --report FILE       also write the comparison as JSON; - is standard output
  --force             replace an existing FILE that is no lock or report
  --generated-at TIME for the report, and for rules that expire (2026-01-31T00:00:00Z)
  --exact             compare the bytes, member by member
  -h, --help          print this help; --folds the rules; --version the version

Exit codes: 0 unchanged   1 changed   2 wrong call   3 not a valid archive or file
  4 inconclusive: not completely, or not equally observed   5 reading or writing failed
Examples:
  runner-diff --lock capabilities.lock.json --fold workspace=$PWD run.tar.gz
`

func app() tool.App {
	return tool.App{
		Name: "runner-diff", Usage: usage,
		Flags: []cli.Flag{&cli.StringSliceFlag{Name: "base"}, &cli.StringFlag{Name: "lock"}, &cli.StringFlag{Name: "write-lock"}, &cli.StringFlag{Name: "update-lock"},
			&cli.BoolFlag{Name: "force"}, &cli.StringSliceFlag{Name: "fold"}, &cli.BoolFlag{Name: "folds"}, &cli.StringFlag{Name: "ignore"}, &cli.StringFlag{Name: "fail-on"},
			&cli.StringFlag{Name: "format", Value: formatText}, &cli.StringFlag{Name: "report"}, &cli.StringFlag{Name: "generated-at"}, &cli.BoolFlag{Name: "exact"}},
		Run: func(ctx context.Context, env *tool.Env) error {
			opt, err := options(env)
			if err != nil {
				return err
			}
			return diff(ctx, env, opt)
		},
	}
}

func main() {
	boundMemory()
	tool.Main(app())
}
