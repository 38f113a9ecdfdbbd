// Runner-correlate joins the layers of a run into one stream: it forwards events
// and kernel lines as they are and adds the capability surface, the correlation
// report and the observation health that follow from them.
package main

import (
	"context"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

const usage = `
runner-correlate joins the layers of one run.

Usage:
  runner-correlate [flags] [FILE]

It reads a kernel.normalized stream from FILE or standard input and writes a
run.joined stream to standard output: the lines of all layers, then the
capability surface, the correlation report and the observation health. It
records what is missing or ambiguous; runner-verify judges it. Windows of tool
calls need the times that runner-normalize --windows adds.

Flags:
  --policy FILE  the decision log of policy proxies, collected or plain
  --sdk FILE     the log of the agent's SDK, collected or plain
  --intents FILE the log of what the command wants to have done, likewise
  --times        add the layer times: needs runner-exec --times, normalize --windows
  --record DIR   what wrappers of the command recorded, as runner-exec keeps it
  --background, --checksum crc32c   yield the processor; a cheaper seal, see STREAMS.md
  -v             print the counts on stderr
  -h, --help     print this help; --version prints the version

Exit codes:
  0  joined, on the full length of the input
  2  wrong call
  3  the input, or a collected log, is not a whole, valid stream
  5  reading or writing failed

Examples:
  runner-correlate --policy policy.ndjson --sdk sdk.ndjson kernel.ndjson
  runner-exec --stream - -- ./agent.sh | runner-normalize | runner-correlate | runner-pack
`

func app() tool.App {
	flags := []cli.Flag{&cli.BoolFlag{Name: "times"}, &cli.StringFlag{Name: "record"}, &cli.StringFlag{Name: "checksum", Value: schemas.ChecksumSHA256}, &cli.BoolFlag{Name: "background"}, &cli.BoolFlag{Name: "v"}}
	for _, l := range schemas.LogLayers() {
		flags = append(flags, &cli.StringFlag{Name: l.Name})
	}
	return tool.App{
		Name: "runner-correlate", Usage: usage, Flags: flags,
		Run: func(_ context.Context, env *tool.Env) error {
			f := env.Flag
			logs := map[string]string{}
			for _, l := range schemas.LogLayers() {
				if err := env.NotEmpty(l.Name); err != nil {
					return err
				}
				logs[l.Name] = f.String(l.Name)
			}
			if err := env.NotEmpty("record"); err != nil {
				return err
			}
			checksum, err := env.Word("checksum", schemas.Checksums[:]...)
			if err != nil {
				return err
			}
			return run(env, Options{Checksum: checksum, Record: f.String("record"), Background: f.Bool("background"), Logs: logs, Times: f.Bool("times")})
		},
	}
}

// softLimit is where the collector works harder: before what is kept is twice that.
const softLimit = 88 << 20 // bytes

// boundMemory keeps the process below 128 MiB. Only the decisions are kept in memory as a run grows, and they
// are bounded; the rest is streamed, or waits on disk.
func boundMemory() {
	tool.CollectLate(50)
	debug.SetMemoryLimit(softLimit)
}

func main() {
	boundMemory()
	tool.Main(app())
}
