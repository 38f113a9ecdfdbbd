// Runner-normalize turns a kernel.raw stream into kernel.normalized: what the
// kernel reported becomes the lines of layers/kernel.ndjson, noise is counted by
// the rule that names it, and the order is that of the fork tree.
package main

import (
	"context"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

const usage = `
runner-normalize turns raw kernel events into the lines of the kernel layer.

Usage:
  runner-normalize [flags] [FILE]

It reads a kernel.raw stream from FILE or standard input and writes a
kernel.normalized stream to standard output, in the order of the fork tree.
Noise is dropped and counted; a refused operation, a write or a creation never is.

Flags:
  --noise TABLE      what is noise: v0 (default), loader (packages are none), or none
  --filtered         write the layer filtered: what was dropped as noise; runner-exec
  --processes        asks for both; this one is the layer process: what each process was
  --drop EXPR        also drop lines for which this jq program says true
  --canonical-pids   write the process's number in the fork tree as pid
  --windows          add times and the process tree, for runner-correlate
  --show-filtered    print what was dropped, and why, on standard error
  --checksum crc32c  a cheaper seal, for a stream that stays between processes
  --background       yield the processor to the measured program
  -v                 say what was done; -h, --help: this help; --version

Exit codes:
  0  normalized, on the full length of the input
  2  wrong call, or a --drop program that fails on a line
  3  the input is not a whole, valid stream
  5  reading or writing failed

Examples:
  runner-exec --stream - -- ./agent.sh | runner-normalize > kernel.ndjson
  runner-normalize --drop '.value // "" | startswith("/tmp/cache/")' raw.ndjson
`

func app() tool.App {
	return tool.App{
		Name: "runner-normalize", Usage: usage,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "noise", Value: schemas.NoiseV0}, &cli.BoolFlag{Name: "filtered"}, &cli.BoolFlag{Name: "processes"},
			&cli.StringFlag{Name: "drop"}, &cli.BoolFlag{Name: "canonical-pids"}, &cli.BoolFlag{Name: "windows"},
			&cli.BoolFlag{Name: "show-filtered"}, &cli.StringFlag{Name: "checksum", Value: schemas.ChecksumSHA256}, &cli.BoolFlag{Name: "background"}, &cli.BoolFlag{Name: "v"},
		},
		Run: run,
	}
}

func run(ctx context.Context, env *tool.Env) error {
	f := env.Flag
	if f.Bool("background") {
		tool.Background()
	}
	go prepare()
	table, err := env.Word("noise", schemas.NoiseTables[:]...)
	if err != nil {
		return err
	}
	checksum, err := env.Word("checksum", schemas.Checksums[:]...)
	if err != nil {
		return err
	}
	filtered := f.Bool("filtered") || table != schemas.NoiseV0
	if filtered {
		debug.SetMemoryLimit(memoryLimit + setMemory)
	}
	return open(ctx, env, Options{
		Noise: table, Filtered: filtered, Processes: f.Bool("processes"),
		Drop: f.String("drop"), HasDrop: f.IsSet("drop"), CanonicalPIDs: f.Bool("canonical-pids"),
		Windows: f.Bool("windows"), ShowFiltered: f.Bool("show-filtered"), Checksum: checksum,
	})
}

// What the collector is told: most memory, and how much more the values of the layer filtered
// may take, which for the most part is never touched.
const (
	memoryLimit = 48 << 20
	setMemory   = 26 << 20
)

func main() {
	// Almost all memory is one arena, so the collector can be kept on a short lead.
	tool.CollectLate(50)
	debug.SetMemoryLimit(memoryLimit)
	tool.Main(app())
}
