// Runner-normalize turns a kernel.raw stream into kernel.normalized: what the
// kernel reported becomes the lines of layers/kernel.ndjson, noise is counted by
// the rule that names it, and the order is that of the fork tree.
package main

import (
	"context"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"runner/cmd/internal/tool"
)

const usage = `
usage: runner-normalize [flags] [FILE]

Reads a kernel.raw stream from FILE or standard input, writes kernel.normalized.
Noise is dropped and counted; what was refused, written or created never is.

  --drop EXPR        also drop lines for which this gojq program says true
  --canonical-pids   write the process's number in the fork tree as pid
  --show-filtered    print what was dropped, and why, on standard error
  --background       yield the processor to everyone else
  -v                 say what was done
  --version, --help

exit: 0 done, 2 wrong arguments or a --drop program that fails on a line,
      3 the input is not a whole stream, 5 reading or writing failed

examples:
  runner-exec --stream - -- ./agent.sh | runner-normalize >kernel.ndjson
  runner-normalize --drop '.value // "" | startswith("/tmp/cache/")' raw.ndjson
`

func app() tool.App {
	return tool.App{
		Name: "runner-normalize", Usage: usage,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "drop"}, &cli.BoolFlag{Name: "canonical-pids"},
			&cli.BoolFlag{Name: "show-filtered"}, &cli.BoolFlag{Name: "background"}, &cli.BoolFlag{Name: "v"},
		},
		Run: run,
	}
}

func run(ctx context.Context, env *tool.Env) error {
	f := env.Flag
	if f.Bool("background") {
		tool.Background()
	}
	return open(ctx, env, Options{f.String("drop"), f.IsSet("drop"), f.Bool("canonical-pids"), f.Bool("show-filtered")})
}

func main() {
	// Almost all memory is one arena, so the collector can be kept on a short lead.
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(48 << 20)
	tool.Main(app())
}
