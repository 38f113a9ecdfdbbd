package main

import (
	"io"

	"github.com/runner-evidence/runner/cmd/internal/junit"
	"github.com/runner-evidence/runner/cmd/internal/pack"
	"github.com/runner-evidence/runner/cmd/internal/sarif"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Options are the command line's choices.
type Options struct {
	Packs       []*pack.Pack
	FailOn      pack.Severity
	List        string // what to list instead: packs, signals
	Explain     string
	JSON        bool
	Files       []output
	GeneratedAt string // "" unless it is given
}

// output is one file to write.
type output struct {
	path  string
	write func(*result, io.Writer) error
}

// The files that flags name.
var outputs = []struct {
	flag, what string
	write      func(*result, io.Writer) error
	begins     string
}{
	{"report", "a lint report", (*result).reportJSON, schemas.ReportBegins(schemas.VersionLintReport)},
	{"closure", "a closure report", (*result).closureJSON, schemas.ReportBegins(schemas.VersionClosure)},
	{"sarif", "a SARIF file", (*result).sarif, sarif.Begins},
	{"junit", "a JUnit file", (*result).junit, junit.Begins},
}

func options(env *tool.Env) (opt Options, err error) {
	for _, what := range []string{"packs", "signals"} {
		if env.Flag.Bool(what) {
			opt.List = what
			return opt, env.NoOperands()
		}
	}
	if err := env.NotEmpty("report", "closure", "sarif", "junit", "explain", tool.FlagGeneratedAt); err != nil {
		return opt, err
	}
	failOn, err := env.Word("fail-on", schemas.Severities[:]...)
	if err != nil {
		return opt, err
	}
	opt.FailOn, _ = pack.ParseSeverity(failOn)
	opt.JSON, opt.Explain = env.Flag.Bool("json"), env.Flag.String("explain")
	if opt.JSON && opt.Explain != "" {
		return opt, tool.Usagef("--explain and --json: expected one of them")
	}
	if opt.Packs, err = pack.OpenAll(env.Flag.StringSlice("pack")); err != nil {
		return opt, err
	}
	if opt.Explain != "" {
		if err := explainable(opt.Packs, opt.Explain); err != nil {
			return opt, err
		}
	}
	if opt.GeneratedAt, err = env.GeneratedAt(); err != nil {
		return opt, err
	}
	var files []tool.Output
	for _, o := range outputs {
		files = append(files, tool.Output{Flag: o.flag, What: o.what, Ours: tool.Begins(o.begins)})
		if path := env.Flag.String(o.flag); path != "" {
			opt.Files = append(opt.Files, output{path, o.write})
		}
	}
	return opt, env.Outputs(files...)
}
