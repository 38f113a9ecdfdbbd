// Runner-show shows what a measured command did: its processes, and what each of them
// executed, wrote, read and reached.
package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-show shows what the command of an archive did.

Usage:
  runner-show [flags] [FILE]

It reads an archive and refuses what runner-verify refuses. It shows one screen: the
whole run, its tool calls, then process by process.

Flags:
  --tree           all processes          --list  one line for each operation
  --json           one JSON object for each operation (schemas/SHOW.md)
  --filtered       what was left out as noise, with the rule
  --html FILE      all in one page for a browser (--force: even over a file that is no page)
 each filter narrows the others; of those on one line, one must fit:
  --writes --reads --execs --net   changes of files, reads, programs, endpoints
  --refused --failed               refused by a rule of the policy; failed with an error
  --who PATH       operations on PATH or below it, or on this address
  --process PID    operations of this process
  --tool-call ID   operations that the record lists for this tool call
 output:
  --top N, --all   names in a group, and processes on the screen (default 6); no limit
  --color WHEN     auto, always or never; auto honours NO_COLOR
  -h, --help       print this help; --version prints the version

Exit codes:
  0 shown   2 wrong call   3 not a valid archive   5 reading or writing failed

Examples:
  runner-show run.tar.gz
  runner-show --json run.tar.gz | jq -r 'select(.write) | .path'
`

func app() tool.App {
	return tool.App{
		Name: "runner-show", Usage: usage,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "tree"}, &cli.BoolFlag{Name: "list"}, &cli.BoolFlag{Name: "json"}, &cli.BoolFlag{Name: "filtered"}, &cli.StringFlag{Name: "html"}, &cli.BoolFlag{Name: "force"},
			&cli.BoolFlag{Name: "writes"}, &cli.BoolFlag{Name: "reads"}, &cli.BoolFlag{Name: "execs"}, &cli.BoolFlag{Name: "net"},
			&cli.BoolFlag{Name: "refused"}, &cli.BoolFlag{Name: "failed"},
			&cli.StringFlag{Name: "who"}, &cli.StringFlag{Name: "process"}, &cli.StringFlag{Name: "tool-call"},
			&cli.IntFlag{Name: "top", Value: defaultTop}, &cli.BoolFlag{Name: "all"}, &cli.StringFlag{Name: "color", Value: colorAuto}},
		Run: func(ctx context.Context, env *tool.Env) error {
			opt, err := options(env)
			if err != nil {
				return err
			}
			return run(ctx, env, opt)
		},
	}
}

func main() {
	tool.CollectLate(100)
	tool.Main(app())
}
