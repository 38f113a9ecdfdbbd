// Runner-otel exports the archive of a run as OpenTelemetry traces and logs, and says what of the
// archive is in them.
package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-otel exports the archive of a run as OpenTelemetry traces and logs.

Usage:
  runner-otel [flags] [FILE]

It refuses what runner-verify refuses. Each tool call becomes a span, each line of the
record a log record (schemas/OTEL.md).

Flags:
  --traces FILE     write the spans, one request on each line
  --logs FILE       write the log records, one request on each line
  --mapping-report FILE  what became of each field of the archive, in JSON
  --force           replace an existing FILE that is something else
  --endpoint URL    send them to URL/v1/traces and URL/v1/logs
  --header KEY=VALUE  of each request; KEY=@FILE takes the value from FILE; repeat
  --ca FILE         trust the certificates of this PEM file for https, and no others
  --state FILE      keep there what was sent, and go on from there
  --timeout D, --retry-for D  for one request (10s), and for all tries of one (5m)
  --traceparent ID  put the run into this trace (W3C: 00-TRACE-SPAN-FLAGS)
  --generated-at T  time of records that have none, as 2026-11-22T12:00:00Z
  --sensitive       export the arguments of programs too, where they were recorded
  -h, --help        print this help; --version prints the version

Exit codes:
  0 written and sent   1 the endpoint refused records   2 wrong call
  3 not a valid archive   5 reading, writing or sending failed

Examples:
  runner-otel --traces traces.jsonl --logs logs.jsonl --mapping-report map.json run.tar.gz
`

func app() tool.App {
	return tool.App{
		Name: "runner-otel", Usage: usage,
		Flags: []cli.Flag{&cli.StringFlag{Name: "traces"}, &cli.StringFlag{Name: "logs"}, &cli.StringFlag{Name: "mapping-report"}, &cli.BoolFlag{Name: "force"},
			&cli.StringFlag{Name: "endpoint"}, &cli.StringSliceFlag{Name: "header"}, &cli.StringFlag{Name: "ca"}, &cli.StringFlag{Name: "state"},
			&cli.StringFlag{Name: "timeout", Value: "10s"}, &cli.StringFlag{Name: "retry-for", Value: "5m"},
			&cli.StringFlag{Name: "traceparent"}, &cli.StringFlag{Name: "generated-at"}, &cli.BoolFlag{Name: "sensitive"}},
		Run: func(ctx context.Context, env *tool.Env) error {
			opt, err := options(env)
			if err != nil {
				return err
			}
			return run(ctx, env, opt)
		},
	}
}

func main() { tool.Main(app()) }
