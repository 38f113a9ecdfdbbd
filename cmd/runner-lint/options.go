package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/pack"
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
	path string
	make func(*result) ([]byte, error)
}

// The files that flags name.
var outputs = []struct {
	flag, what string
	make       func(*result) ([]byte, error)
	ours       func(io.Reader) bool
}{
	{"report", "a lint report", (*result).reportJSON, hasVersion(schemas.VersionLintReport)},
	{"closure", "a closure report", (*result).closureJSON, hasVersion(schemas.VersionClosure)},
	{"sarif", "a SARIF file", (*result).sarif, begins(`{"$schema":"https://json.schemastore.org/sarif`)},
	{"junit", "a JUnit file", (*result).junit, begins("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>")},
}

// hasVersion reports of a file whether it is a report of that version.
func hasVersion(version string) func(io.Reader) bool {
	return func(r io.Reader) bool {
		var head struct {
			SchemaVersion string `json:"schema_version"`
		}
		b, err := io.ReadAll(io.LimitReader(r, maxReport))
		return err == nil && json.NewDecoder(bytes.NewReader(b)).Decode(&head) == nil && head.SchemaVersion == version
	}
}

// begins reports of a file whether it begins with a text.
func begins(text string) func(io.Reader) bool {
	return func(r io.Reader) bool {
		b := make([]byte, len(text))
		_, err := io.ReadFull(r, b)
		return err == nil && string(b) == text
	}
}

// maxReport bounds what is read of a file that may be a report.
const maxReport = 64 << 20

func options(env *tool.Env) (opt Options, err error) {
	for _, what := range []string{"packs", "signals"} {
		if env.Flag.Bool(what) {
			opt.List = what
			return opt, env.NoOperands()
		}
	}
	if err := env.NotEmpty("report", "closure", "sarif", "junit", "explain"); err != nil {
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
	if opt.GeneratedAt, err = generatedAt(); err != nil {
		return opt, err
	}
	for _, o := range outputs {
		path := env.Flag.String(o.flag)
		if path == "" {
			continue
		}
		if !env.Flag.Bool("force") {
			if err := tool.Replaceable(path, o.what, o.ours); err != nil {
				return opt, err
			}
		}
		opt.Files = append(opt.Files, output{path, o.make})
	}
	return opt, nil
}

// generatedAt is the time of SOURCE_DATE_EPOCH. No report has another one: the same inputs give the same
// bytes.
func generatedAt() (string, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return "", nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > 253402300799 {
		return "", tool.Fail(tool.ExitUsage, fmt.Errorf("SOURCE_DATE_EPOCH is %q, expected seconds since 1970", text))
	}
	return time.Unix(n, 0).UTC().Format(time.RFC3339), nil
}
