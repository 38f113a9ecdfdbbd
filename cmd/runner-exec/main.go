// Command runner-exec runs one command in a cgroup of its own and writes the
// record of what it did to one archive. It starts the other stages itself. As it is
// between the user and the command, it passes on unchanged: standard input, output and
// error, the working directory, the environment, the umask, other open descriptors,
// signals and the exit status.
//
// A policy file and an agent shim give the command logs to write to: FIFOs that
// runner-exec empties while the command runs (schemas/POLICY.md, "Collected logs"). Only the
// variables that name them are then added to the environment.
//
// Two things the Go runtime changes. Of the signals that are ignored when runner-exec
// starts, only HUP, INT, TSTP, TTIN and TTOU are ignored in the command too (nohup and
// background jobs work); the others have their default action. A standard descriptor
// that is closed when runner-exec starts is /dev/null in the command.
//
// Signals are passed to the command. INT, QUIT and WINCH that a terminal sends
// reach the command directly, as it is in the same process group; they are
// passed on only while runner-exec is not in the terminal's foreground.
// runner-exec itself goes on until the record is sealed. After the command has ended,
// a second INT, TERM or HUP kills what is left in the cgroup, and a third one gives up
// the record.
package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

func main() {
	keeper()
	tool.CollectLate(100)
	tool.Main(app())
}

func app() tool.App {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "run-id"},
		&cli.StringFlag{Name: "archive"},
		&cli.StringSliceFlag{Name: "pack"},
		&cli.StringFlag{Name: "stream"},
		&cli.StringFlag{Name: "keep"},
		&cli.StringFlag{Name: "policy"},
		&cli.StringFlag{Name: "agent-shim", Value: schemas.ShimNone},
		&cli.BoolFlag{Name: "intents"},
		&cli.BoolFlag{Name: "no-kernel"},
		&cli.BoolFlag{Name: "times"},
		&cli.BoolFlag{Name: "replayable"},
		&cli.StringFlag{Name: "user"},
		&cli.BoolFlag{Name: "no-new-privs"},
		&cli.BoolFlag{Name: "harden"},
		&cli.BoolFlag{Name: "canonical-pids"},
		&cli.StringFlag{Name: "drop"},
		&cli.StringFlag{Name: "noise", Value: schemas.NoiseV0},
		&cli.BoolFlag{Name: "no-filtered"},
		&cli.BoolFlag{Name: "no-processes"},
		&cli.StringFlag{Name: "argv", Value: schemas.ArgvHash},
		&cli.StringFlag{Name: "argv-key"},
		&cli.StringFlag{Name: "ring-size", Value: "16M"},
		&cli.StringFlag{Name: "spool-size"},
		&cli.DurationFlag{Name: "timeout"},
		&cli.DurationFlag{Name: "grace", Value: defaultGrace},
		&cli.StringFlag{Name: "redundant", Value: "auto"},
		&cli.StringFlag{Name: "probes", Value: schemas.ProbesAuto},
		&cli.StringFlag{Name: "without", Value: schemas.LoadNone},
		&cli.StringFlag{Name: "cgroup-parent"},
		&cli.StringFlag{Name: "file-mechanism", Value: schemas.FileMechanismAuto},
		&cli.StringFlag{Name: "spool-dir"},
		&cli.StringFlag{Name: "resume"},
		&cli.BoolFlag{Name: "force"},
		&cli.BoolFlag{Name: "q"},
		&cli.BoolFlag{Name: "v"},
	}
	for _, l := range schemas.LogLayers() {
		flags = append(flags, &cli.StringFlag{Name: l.Name + "-log"})
	}
	return tool.App{Name: "runner-exec", Usage: usage, Flags: flags, Program: tool.Runs, Run: func(_ context.Context, env *tool.Env) error {
		o, err := options(env)
		if err != nil {
			return err
		}
		switch {
		case o.Resume != "":
			return ownFailure(resume(o, env))
		case o.SpoolDir != "":
			return ownFailure(runSpooled(o, env))
		}
		return ownFailure(Run(o, env))
	}}
}
