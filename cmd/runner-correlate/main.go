// Runner-correlate joins the layers of a run into one stream: it forwards events
// and kernel lines as they are and adds the capability surface, the correlation
// report and the observation health that follow from them.
package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"runner/cmd/internal/tool"
)

const usage = `
runner-correlate joins the layers of one run.

Usage:
  runner-correlate [flags] [FILE]

It reads a kernel.normalized stream from FILE or standard input and writes a
run.joined stream to standard output: the input's lines as they are, then the
capability surface, the correlation report and the observation health. It
records what is missing; runner-verify judges it.

Flags:
  --background   yield the processor to the measured program
  -v             say on stderr what was counted
  -h, --help     print this help
  --version      print the version

Exit codes:
  0  joined, on the full length of the input
  2  wrong call
  3  the input is not a whole, valid stream
  5  reading or writing failed

Examples:
  runner-correlate < kernel.ndjson > joined.ndjson
  runner-exec --stream - -- ./agent.sh | runner-normalize | runner-correlate | runner-pack
`

func app() tool.App {
	return tool.App{
		Name: "runner-correlate", Usage: usage,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "background"}, &cli.BoolFlag{Name: "v"}},
		Run: func(_ context.Context, env *tool.Env) error {
			return run(env, Options{Background: env.Flag.Bool("background")})
		},
	}
}

func main() { tool.Main(app()) }
