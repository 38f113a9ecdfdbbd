package main

import (
	"bytes"
	"io"
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
	if err := env.NotEmpty("traces", "logs", "mapping-report", "endpoint", "ca", "state", "traceparent", "generated-at"); err != nil {
		return opt, err
	}
	opt = Options{Traces: env.Flag.String("traces"), Logs: env.Flag.String("logs"), Report: env.Flag.String("mapping-report"),
		State: env.Flag.String("state"), Sensitive: env.Flag.Bool("sensitive")}
	if opt.Traces+opt.Logs+opt.Report+env.Flag.String("endpoint") == "" {
		return opt, tool.Missing("--traces, --logs, --mapping-report or --endpoint", example)
	}
	if err := opt.files(env); err != nil {
		return opt, err
	}
	if s := env.Flag.String("traceparent"); s != "" {
		if opt.Trace, err = otlp.ParseTraceparent(s); err != nil {
			return opt, tool.Usagef("--traceparent: %w", err)
		}
	}
	at, err := env.GeneratedAt("generated-at")
	if err != nil {
		return opt, err
	}
	if at != "" {
		t, err := time.Parse(time.RFC3339, at)
		if err != nil || t.Unix() < 0 || t.Year() > 2200 {
			return opt, tool.BadValue("generated-at", at, "a time from 1970 to 2200")
		}
		opt.Generated = uint64(t.UnixNano())
	}
	opt.Client, err = client(env)
	return opt, err
}

// files checks the names of the files.
func (o *Options) files(env *tool.Env) error {
	names := map[string]string{}
	for _, f := range []struct {
		flag, name, what string
		ours             func(io.Reader) bool
	}{
		{"traces", o.Traces, "a file of traces", begins(otlp.Traces.Begins())},
		{"logs", o.Logs, "a file of logs", begins(otlp.Logs.Begins())},
		{"mapping-report", o.Report, "a report of runner-otel", begins(`{"schema_version":"` + schemas.VersionOTelMapping + `"`)},
		{"state", o.State, "a state of runner-otel", begins(`{"schema_version":"` + schemas.VersionOTelState + `"`)},
	} {
		if f.name == "" {
			continue
		}
		if f.name == "-" {
			return tool.BadValue(f.flag, f.name, "the name of a file")
		}
		if other := names[f.name]; other != "" {
			return tool.Usagef("--%s and --%s name one file: expected a file for each", other, f.flag)
		}
		names[f.name] = f.flag
		if !env.Flag.Bool("force") {
			if err := tool.Replaceable(f.name, f.what, f.ours); err != nil {
				return err
			}
		}
	}
	return nil
}

// begins recognizes a file by its first bytes. An empty file has nothing to keep.
func begins(head string) func(io.Reader) bool {
	return func(r io.Reader) bool {
		b, err := io.ReadAll(io.LimitReader(r, int64(len(head))))
		return err == nil && (len(b) == 0 || bytes.Equal(b, []byte(head)))
	}
}
