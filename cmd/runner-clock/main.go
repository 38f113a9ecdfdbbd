// Command runner-clock runs a command whose programs of Node and Python have a clock and random numbers that are the same each
// time, and records what they read of the clock.
package main

import (
	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-clock gives programs a clock and random numbers that are the same each time.

Usage:
  runner-clock [flags] -- COMMAND [ARG…]

Programs of Node and Python, and those that they start, have a clock that begins at --start and
moves by what they do: each read is 10 µs, a sleep or a timer what it was set to. Their random
numbers follow from --seed. Other programs see variables: AGENT_SEED, AGENT_START_TIME, and
PYTHONHASHSEED, UV_THREADPOOL_SIZE, GOMAXPROCS, JAVA_TOOL_OPTIONS and TZ. What such a program
reads of time and randomness nobody can control: see schemas/CLOCK.md.

Flags:
  --seed N            a number or a word (default: another one each time)
  --start TIME        2026-01-01T00:00:00Z (default: now)
  --only node,python  runtimes that have the shim (default: both)
  --crypto seed       where random bytes for keys and UUIDs come from, or system
  -o, --output FILE   write the record: what was set, and what each process did with its clock
  --replay FILE       seed, start and reads of the clock of this record
  --run-id ID         name of the run in the record
  --user USER         NAME, UID or UID:GID (default: who called sudo, else the caller; they own the record)
  --force             replace a FILE that is no such record
  --probe             say for which runtimes this machine has programs, and run nothing
  -v                  say how many ticks there were; -h, --help; --version

Exit codes: the command's own; 128+N signal N; 127 not found; 126 cannot be run;
125 own failure

Examples:
  runner-clock --seed 42 --start 2026-01-01T00:00:00Z -o clock.ndjson -- node agent.mjs
  runner-net replay net -- runner-box --base . -- runner-clock --replay clock.ndjson -- ./agent
`

func main() { tool.Main(app()) }

func app() tool.App {
	return tool.App{Name: "runner-clock", Usage: usage, Wraps: true, Program: tool.Runs, Flags: []cli.Flag{
		&cli.StringFlag{Name: "seed"},
		&cli.StringFlag{Name: "start"},
		&cli.StringFlag{Name: "only", Value: "node,python"},
		&cli.StringFlag{Name: "crypto", Value: "seed"},
		&cli.StringFlag{Name: "o", Aliases: []string{"output"}},
		&cli.StringFlag{Name: "replay"},
		&cli.StringFlag{Name: "run-id"},
		&cli.StringFlag{Name: "user"},
		&cli.BoolFlag{Name: "force"},
		&cli.BoolFlag{Name: "probe"},
		&cli.BoolFlag{Name: "v"},
	}, Run: run}
}
