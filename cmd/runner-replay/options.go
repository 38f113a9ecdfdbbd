package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Options is one call.
type Options struct {
	Archive      string
	Output       string // of the last replay, or ""
	Base         string // directory or tar that is the base instead of the recorded one, or ""
	Env          []string
	Uncontrolled bool // run also if something is missing
	Runs         uint
	Metrics      string
	JSON         bool
	Timeout      time.Duration
	Show         bool
}

// maxRuns bounds --runs.
const maxRuns = 100_000

func options(env *tool.Env) (o Options, err error) {
	f := env.Flag
	if err := env.NotEmpty("o", "base", "metrics", "env"); err != nil {
		return o, err
	}
	file, err := env.One("the archive", "runner-replay run.tar.gz")
	if err != nil {
		return o, err
	}
	o = Options{Archive: file, Output: f.String("o"), Base: f.String("base"), Env: f.StringSlice("env"), Uncontrolled: f.Bool("allow-uncontrolled"), Runs: f.Uint("runs"),
		Metrics: f.String("metrics"), JSON: f.Bool("json"), Show: f.Bool("v")}
	if o.Runs < 1 || o.Runs > maxRuns {
		return o, tool.BadValue("runs", fmt.Sprint(o.Runs), fmt.Sprintf("1 to %d", maxRuns))
	}
	for _, name := range o.Env {
		if strings.Contains(name, "=") {
			return o, tool.BadValue("env", name, "the name of a variable")
		}
		if _, set := os.LookupEnv(name); !set {
			return o, tool.BadValue("env", name, "a variable that is set here")
		}
	}
	if f.IsSet("timeout") {
		if o.Timeout, err = env.Duration("timeout"); err != nil {
			return o, err
		}
	}
	if o.Base != "" {
		if o.Base, err = filepath.Abs(o.Base); err != nil {
			return o, err
		}
		st, err := os.Stat(o.Base)
		if err != nil {
			return o, tool.CannotRead("--base "+o.Base, err)
		}
		if o.Metrics != "" && !st.IsDir() {
			return o, tool.Fail(tool.ExitUsage, fmt.Errorf("--base %s is a file, and --metrics measures the way back in a copy of a directory", schemas.Text(o.Base)), "unpack it, and give the directory")
		}
	}
	return o, env.Outputs(tool.Output{Flag: "o", What: "the archive of a run", Ours: tool.IsArchive}, tool.Output{Flag: "metrics", What: "the metrics of runner-replay", Ours: tool.Begins(`{"schema_version":"` + schemas.VersionReplayMetrics)})
}
