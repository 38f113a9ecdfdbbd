// Runner-pack writes the archive of a run: it routes the records of a run.joined
// stream to their members, digests them and packs them, manifest first.
package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/pack"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-pack writes the archive of one run.

Usage:
  runner-pack [flags] [FILE]

It reads a run.joined stream from FILE or standard input and writes its archive,
a sorted and digested .tar.gz. The file appears only when the whole input was
checked, and replaces an older one in one step. One summary line goes to stderr.

Flags:
  -o, --output FILE   write to FILE, "-" is standard output
                 (default: assay-runner-spike-RUN_ID.tar.gz, in $RUNNER_ARCHIVE_DIR)
  --force        replace an existing FILE that is not an archive
  --pack NAME    name this pack in the manifest: it is applied to the run; repeat for several
  --record DIR, --run-id ID   blobs and output of the run; refuse the stream of another one
  --background   yield the processor to the measured program
  -v             also say what the record claims, and its identity
  -q             print only errors and warnings; a record that is not whole is a warning
  -h, --help     print this help
  --version      print the version

Exit codes:
  0  archive written
  2  wrong call
  3  the input is not a whole, valid stream
  5  reading or writing failed

Examples:
  runner-pack -o run.tar.gz joined.ndjson
  runner-exec --stream - -- ./agent.sh | runner-normalize | runner-correlate | runner-pack
`

func app() tool.App {
	return tool.App{
		Name: "runner-pack", Usage: usage,
		Flags: []cli.Flag{&cli.StringFlag{Name: "o", Aliases: []string{"output"}},
			&cli.StringSliceFlag{Name: "pack"}, &cli.StringFlag{Name: "run-id"}, &cli.StringFlag{Name: "record"}, &cli.BoolFlag{Name: "background"},
			&cli.BoolFlag{Name: "force"}, &cli.BoolFlag{Name: "q"}, &cli.BoolFlag{Name: "v"}},
		Run: func(_ context.Context, env *tool.Env) error {
			id, err := env.RunID()
			if err != nil {
				return err
			}
			packs, err := pack.Apply(env.Flag.StringSlice("pack"))
			if err != nil {
				return err
			}
			if err := env.NotEmpty("record"); err != nil {
				return err
			}
			return run(env, Options{Record: env.Flag.String("record"), Packs: packs.Manifest, Output: env.Flag.String("o"), RunID: id, Background: env.Flag.Bool("background"), Force: env.Flag.Bool("force")})
		},
	}
}

func main() {
	tool.CollectLate(100)
	tool.Main(app())
}
