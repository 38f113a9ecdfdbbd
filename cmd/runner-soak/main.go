// Command runner-soak runs a command several times, each time measured by runner-exec and judged by
// runner-lint, and says how often it passed and what that supports. It starts both as processes: each
// run has its own cgroup, its own seed in AGENT_SEED, and its own archive.
//
// The command's standard input is /dev/null, and its output goes to a file beside the archive. A
// soak that was interrupted goes on when it is called again with the same --dir: runs that were
// finished are judged again from their archives, and not run again.
package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/pack"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-soak runs a command N times, judges each run, and says how often it passes.

Usage:
  runner-soak --iterations N [flags] -- COMMAND [ARG…]
  runner-soak [flags] --target ARCHIVE…
  runner-soak [flags] --merge REPORT…

Flags:
  --iterations N, --seed S   how often; run i has a seed of its own, from S and i, in AGENT_SEED
  --target, --merge   judge archives that exist; join the reports (or surfaces) of all shards
  --pack NAME|FILE, --fail-on SEVERITY   what runner-lint checks; repeat (cicd-starter); error
  --stop-on-first-failure, --max-failures N, --time-budget D   when it ends early (24h)
  --report FILE, --surface FILE, --junit FILE   soak-report-v1; soak-surface-v1: all faults
  --dir DIR          keep archives and output there; the same call again goes on where it was
  --fault NAME=WRAPPER   repeat all with these words before the command; repeat
  --jobs J           so many runs at once (1); --shard i/n: only iterations i, i+n, i+2n, …
  --timeout D, --exec FLAGS   ends each run after D; flags for runner-exec, as one word
  --suite NAME, --generated-at TIME, --force   for the report; replace files that are none
  --json             print the report and not the text; -q: no progress
  -h, --help         print this help; --version prints the version

Exit codes: 0 all passed   1 a run failed   2 wrong call   3 not a valid archive, pack or report
  4 none failed, but not all could be judged   5 reading or writing failed   128+N signal N
  or that of runner-exec, if it refused to begin a run
Examples:
  sudo runner-soak --iterations 10 --dir soak --report soak.json -- npm test
  runner-soak --report all.json --merge shard-*.json
`

func app() tool.App {
	return tool.App{
		Name: "runner-soak", Usage: usage, Program: program,
		Flags: []cli.Flag{&cli.IntFlag{Name: "iterations"}, &cli.StringFlag{Name: "seed", Value: "0"},
			&cli.StringSliceFlag{Name: "pack"}, &cli.StringFlag{Name: "fail-on", Value: pack.Error.String()},
			&cli.BoolFlag{Name: "stop-on-first-failure"}, &cli.IntFlag{Name: "max-failures"}, &cli.DurationFlag{Name: "time-budget", Value: defaultBudget},
			&cli.StringFlag{Name: "report"}, &cli.StringFlag{Name: "surface"}, &cli.StringFlag{Name: "junit"}, &cli.StringFlag{Name: "dir"},
			&cli.StringSliceFlag{Name: "fault"}, &cli.IntFlag{Name: "jobs", Value: 1}, &cli.StringFlag{Name: "shard"},
			&cli.DurationFlag{Name: "timeout"}, &cli.StringFlag{Name: "exec"}, &cli.StringFlag{Name: "suite"},
			&cli.StringFlag{Name: "generated-at"}, &cli.BoolFlag{Name: "force"}, &cli.BoolFlag{Name: "json"},
			&cli.StringSliceFlag{Name: "target"}, &cli.StringSliceFlag{Name: "merge"}, &cli.BoolFlag{Name: "q"}},
		Run: func(ctx context.Context, env *tool.Env) error {
			opt, err := options(env)
			if err != nil {
				return err
			}
			if opt.Merge != nil {
				return merge(env, opt)
			}
			return soak(ctx, env, opt)
		},
	}
}

func main() { tool.Main(app()) }
