// Command runner-box runs a command in a box: a read-only root, a workspace of which every change is recorded, no rights.
// Like env(1) and timeout(1) it passes streams, signals and the exit status through.
package main

import (
	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/box"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-box runs a command in a box and records what it changed.

Usage:
  runner-box [flags] -- COMMAND [ARG…]

In the box everything is read-only but the workspace, where the command starts, and
/tmp, /run and /var/tmp, which are empty at first. It has processes, a /proc, a /dev
and a host name of its own, no capabilities, and no way to mount or to gain rights.
No container engine, no root. What the command writes is in memory, and gone at the end.

Flags:
  --base DIR|TAR     what is in the workspace at first; it stays as it is (default: nothing)
  --workdir DIR      where the workspace is (default /workspace)
  -o, --output DIR   write the record, outside of the base: box.ndjson, and blobs/sha256 with files
  --base-by-digest   the bytes of the base are not part of the record, only its digest
  --fallback copy    work on a copy of the base where no overlay can be mounted, or fail
  --cpu N            run on processor N only
  --user USER        NAME, UID or UID:GID (default: who called sudo, else the caller; they own the record)
  --grace D          what outlives the command is killed after this time (10s)
  --run-id ID        name of the run in the record
  --probe            say what this machine can do, and run nothing
  -v                 say what changed; -h, --help; --version

Exit codes: the command's own; 128+N signal N; 127 not found; 126 cannot be run;
125 own failure: nothing was run, or there is no record

Examples:
  runner-box --base . -o ../record -- make test
  runner-exec -- runner-box --base project.tar.gz -- node agent.mjs
`

func main() {
	if box.IsInit() {
		box.Init()
		return
	}
	tool.Main(app())
}

func app() tool.App {
	return tool.App{Name: "runner-box", Usage: usage, Wraps: true, Program: tool.Runs, Flags: []cli.Flag{
		&cli.StringFlag{Name: "base"},
		&cli.StringFlag{Name: "workdir", Value: box.Workdir},
		&cli.StringFlag{Name: "o", Aliases: []string{"output"}},
		&cli.BoolFlag{Name: "base-by-digest"},
		&cli.StringFlag{Name: "fallback", Value: box.FallbackFail},
		&cli.IntFlag{Name: "cpu"},
		&cli.StringFlag{Name: "user"},
		&cli.DurationFlag{Name: "grace", Value: box.Grace},
		&cli.StringFlag{Name: "run-id"},
		&cli.BoolFlag{Name: "probe"},
		&cli.BoolFlag{Name: "v"},
	}, Run: run}
}
