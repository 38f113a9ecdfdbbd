// Runner-replay runs the command of an archive again, from what went in, and says where the two runs differ.
package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-replay runs a recorded command again from what went in, and says where it drifts.

Usage:
  runner-replay [flags] ARCHIVE

The archive is that of runner-exec --replayable, behind runner-net, runner-box and
runner-clock. The workspace begins as it did then, requests are answered from the
recording, clock and seed are those of the record. Nothing reaches the network.

Flags:
  -o FILE, --force  keep the archive of the replay (of the last of several); over any file
  --base DIR|TAR   the base, if the archive has only its digest; another one is a drift
  --env NAME       take a variable that was a secret from the environment; repeat
  --allow-uncontrolled  run also if something that went in is not recorded
  --runs N         replay N times, and print how many were equal
  --metrics FILE   write replay_fidelity, boundary_coverage, mean_revert_time_ms as JSON
  --json           print the result as JSON
  --timeout D      end a replay after D
  -v, -q           print the command's output; print only errors
  -h, --help       print this help; --version prints the version

Exit codes:
  0 equal   1 drifted   2 wrong call   3 not a valid archive
  4 not closed: something that went in is missing   5 reading, writing or running failed

Examples:
  runner-replay run.tar.gz -o again.tar.gz
  runner-replay --runs 50 --metrics metrics.json run.tar.gz
`

func app() tool.App {
	return tool.App{
		Name: "runner-replay", Usage: usage,
		Flags: []cli.Flag{&cli.StringFlag{Name: "o"}, &cli.BoolFlag{Name: "force"}, &cli.StringFlag{Name: "base"}, &cli.StringSliceFlag{Name: "env"}, &cli.BoolFlag{Name: "allow-uncontrolled"},
			&cli.UintFlag{Name: "runs", Value: 1}, &cli.StringFlag{Name: "metrics"}, &cli.BoolFlag{Name: "json"}, &cli.DurationFlag{Name: "timeout"}, &cli.BoolFlag{Name: "v"}, &cli.BoolFlag{Name: "q"}},
		Run: func(ctx context.Context, env *tool.Env) error {
			o, err := options(env)
			if err != nil {
				return err
			}
			return run(ctx, env, o)
		},
	}
}

func main() { tool.Main(app()) }
