package main

import (
	"time"

	"github.com/runner-evidence/runner/cmd/internal/otlp"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Options are the command line's choices.
type Options struct {
	Traces, Logs, Report string // files, or ""
	Client               *otlp.Client
	State                string
	Trace                otlp.Trace // empty: one of the run's own
	Generated            uint64     // nanoseconds since 1970; 0 is not given
	Sensitive            bool
}

const example = "runner-otel --traces traces.jsonl --logs logs.jsonl --mapping-report mapping.json run.tar.gz"

func options(env *tool.Env) (opt Options, err error) {
	if err := env.NotEmpty("traces", "logs", "mapping-report", "endpoint", "ca", "state", "traceparent", tool.FlagGeneratedAt); err != nil {
		return opt, err
	}
	opt = Options{Traces: env.Flag.String("traces"), Logs: env.Flag.String("logs"), Report: env.Flag.String("mapping-report"),
		State: env.Flag.String("state"), Sensitive: env.Flag.Bool("sensitive")}
	if opt.Traces+opt.Logs+opt.Report+env.Flag.String("endpoint") == "" {
		return opt, tool.Missing("--traces, --logs, --mapping-report or --endpoint", example)
	}
	if err := files(env); err != nil {
		return opt, err
	}
	if s := env.Flag.String("traceparent"); s != "" {
		if opt.Trace, err = otlp.ParseTraceparent(s); err != nil {
			return opt, tool.Usagef("--traceparent: %w", err)
		}
	}
	at, err := env.GeneratedAt()
	if err != nil {
		return opt, err
	}
	if at != "" {
		t, err := time.Parse(time.RFC3339, at)
		if err != nil || t.Year() > 2200 {
			return opt, tool.BadValue(tool.FlagGeneratedAt, at, "a time from 1970 to 2200")
		}
		opt.Generated = uint64(t.UnixNano())
	}
	opt.Client, err = client(env)
	return opt, err
}

// files checks the names of the files.
func files(env *tool.Env) error {
	return env.Outputs(tool.Output{Flag: "traces", What: "a file of traces", Ours: tool.Begins(otlp.Traces.Begins())},
		tool.Output{Flag: "logs", What: "a file of logs", Ours: tool.Begins(otlp.Logs.Begins())},
		tool.Output{Flag: "mapping-report", What: "a report of runner-otel", Ours: tool.Begins(schemas.ReportBegins(schemas.VersionOTelMapping))},
		tool.Output{Flag: "state", What: "a state of runner-otel", Ours: tool.Begins(schemas.ReportBegins(schemas.VersionOTelState))})
}
