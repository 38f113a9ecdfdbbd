// Command runner-net runs a command in a network namespace of its own, in which every address leads to runner-net, and passes
// its requests on as rules allow, refuses them, or answers them from a recording. All of it is recorded.
package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/netns"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-net records what a command asks of the network, refuses it, or answers from a recording.

Usage:
  runner-net record [flags] -- COMMAND [ARG…]
  runner-net replay [flags] RECORD -- COMMAND [ARG…]
  runner-net deny [flags] -- COMMAND [ARG…]
  runner-net har|prompts RECORD

Every name and address leads to runner-net, with proxy variables or without: HTTP/1.1, HTTP/2,
TLS with a CA made for this run, DNS. record passes on what --allow allows; replay answers equal
requests in recorded order, never from the network; deny answers 403. har prints HAR 1.2, prompts
the calls of language models. A RECORD is the directory of -o, or the archive of a measured run.

Flags:
  --allow FILE         which requests may leave (schemas/NET.md); without it, none
  --upstream NAME:PORT=HOST:PORT  where a service of that name is; repeat for several
  -o, --output DIR     write the record: net.ndjson, and blobs/sha256 with the bodies
  --keep-header, --redact-header NAME  record its values; or not. Repeat for several
  --redact-key FILE    digests (HMAC) in the place of values that are not recorded
  --match-header NAME  requests with other values of it are not equal, in replay
  --live-ca FILE       trust these authorities too, of servers
  --user USER          NAME, UID or UID:GID (default: who called sudo, else the caller; they own the record)
  --run-id ID; --probe: can it be done here?; -v; -h, --help; --version

Exit codes: the command's own; 128+N signal N; 127 not found; 126 cannot be run; 125 own
failure. Of har and prompts: 0; 2 wrong call; 3 no record; 5 reading or writing failed

Examples:
  runner-net record --allow allow.yaml -o net -- node agent.mjs
  runner-net replay -o again net -- node agent.mjs
`

func main() {
	if netns.IsInside() {
		netns.Inside()
		return
	}
	tool.Main(app())
}

func app() tool.App {
	return tool.App{Name: "runner-net", Usage: usage, Words: []string{"record", "replay", "deny", "har", "prompts"}, Wraps: true, Filters: []string{"har", "prompts"}, Program: program, Flags: []cli.Flag{
		&cli.StringFlag{Name: "allow"},
		&cli.StringSliceFlag{Name: "upstream"},
		&cli.StringFlag{Name: "o", Aliases: []string{"output"}},
		&cli.StringSliceFlag{Name: "keep-header"},
		&cli.StringSliceFlag{Name: "redact-header"},
		&cli.StringFlag{Name: "redact-key"},
		&cli.StringSliceFlag{Name: "match-header"},
		&cli.StringFlag{Name: "live-ca"},
		&cli.StringFlag{Name: "user"},
		&cli.StringFlag{Name: "run-id"},
		&cli.BoolFlag{Name: "probe"},
		&cli.BoolFlag{Name: "v"},
	}, Run: run}
}

// program says where the command of a call begins.
func program(c *tool.Call) int {
	switch c.Word {
	case "har", "prompts":
		return tool.NoProgram
	case "replay":
		return 1 // the record
	}
	return 0
}

func run(ctx context.Context, env *tool.Env) error {
	switch {
	case env.Command == "har":
		return har(ctx, env)
	case env.Command == "prompts":
		return prompts(ctx, env)
	case env.Flag.Bool("probe"):
		return probe(env)
	}
	o, err := options(ctx, env)
	if o.done != nil {
		defer o.done()
	}
	if err != nil {
		return err
	}
	return runCommand(env, o)
}
