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
  runner-diff [flags] BASE NEW            runner-diff --base BASE... [flags] NEW
  runner-diff --lock FILE [flags] NEW     runner-diff --write-lock FILE RUN...
  runner-diff --update-lock FILE NEW      runner-diff --exact BASE NEW

It reads archives and refuses what runner-verify refuses.

Flags:
  --base FILE         a baseline; repeat for several: an item carries in how many it is
  --lock FILE         compare with a lock file, a text file to commit and review
  --write-lock FILE   write one; --update-lock FILE adds what is new (--force: replace others)
  --fold RULE         names that differ in each run: a rule of --folds, NAME=FOLDER
                      (home=$HOME, workspace=$PWD), or none; default: all rules
  --ignore FILE       rules for what is ignored, in YAML or JSON (schemas/DIFF.md)
  --fail-on GROUPS    exit 1 only for these, with commas (default all): exec network tool
                      write-outside decision blocked write other read removed; or none
  --format NAME       text (default), markdown, sarif, junit or json
  --report FILE       also write the comparison as JSON; - is standard output
  --generated-at T    the time of the report (RFC 3339); expiry of rules is judged by it
  --exact             compare the bytes, member by member
  -h, --help          print this help; --folds lists the rules; --version

Exit codes:
  0 unchanged   1 changed   2 wrong call   3 not a valid archive, lock or rules
  4 inconclusive: not complete, or not the same was observed   5 reading or writing failed
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

func main() { tool.Main(app()) }
