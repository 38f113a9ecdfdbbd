// Command runner-suite runs suites of cases for the process API: each case is a frame that an
// executable gets, and the bytes that it must answer (schemas/PROC.md, "Suites").
package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/junit"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-suite runs suites of cases for the process API.

Usage:
  runner-suite [flags] SUITE.json…

Each case gives its input to a program on standard input, and compares what that
writes with what is expected. Results of the process API are compared by what they
mean, everything else by its bytes. In the world run-os, the files that a case
requires are looked at before it runs; in other worlds no file is.

Flags:
  --exec COMMAND   the program and its arguments, separated by blanks, without a shell;
                   {world}, {policy} and {program} stand for what the suite says
                   (default: runner-proc in the world, and by the policy, of the suite)
  --root DIR       where the paths of the suite and the program start (default .)
  --timeout 1m     for one case
  --json           NDJSON also on a terminal: a line for each case, and a report last
  --junit FILE     write the results for a CI system
  --force          replace a FILE that is none of them
  -h, --help       print this help; --version prints the version

Exit codes: 0 all cases passed   1 one failed, or could not run   2 wrong call
3 not a suite   5 reading or writing failed

Examples:
  runner-suite proc-echo-smoke.json
  runner-suite --exec './other-runner --world {world}' suites/*.json
`

func main() { tool.Main(app()) }

func app() tool.App {
	return tool.App{Name: "runner-suite", Usage: usage, Flags: []cli.Flag{
		&cli.StringFlag{Name: "exec"}, &cli.StringFlag{Name: "root", Value: "."}, &cli.DurationFlag{Name: "timeout", Value: time.Minute},
		&cli.BoolFlag{Name: "json"}, &cli.StringFlag{Name: "junit"}, &cli.BoolFlag{Name: "force"},
	}, Run: run}
}

// Options is one call.
type Options struct {
	Command []string // empty: runner-proc
	Root    string
	Timeout time.Duration
	JSON    bool
	JUnit   string
	Suites  []*suite
}

func options(env *tool.Env) (o Options, err error) {
	f := env.Flag
	o = Options{Command: strings.Fields(f.String("exec")), Root: f.String("root"), JSON: f.Bool("json") || !tool.IsTerminal(env.Stdout), JUnit: f.String("junit")}
	if o.Timeout, err = env.Duration("timeout"); err != nil {
		return o, err
	}
	if f.IsSet("exec") && len(o.Command) == 0 {
		return o, tool.BadValue("exec", f.String("exec"), "a program and its arguments")
	}
	if info, err := os.Stat(o.Root); err != nil || !info.IsDir() {
		return o, tool.BadValue("root", o.Root, "a directory")
	}
	if len(env.Args) == 0 {
		return o, tool.Missing("SUITE.json", "runner-suite suite.json")
	}
	ours := func(r io.Reader) bool {
		head := make([]byte, len(junit.Begins))
		n, _ := io.ReadFull(r, head)
		return bytes.HasPrefix(head[:n], []byte("<?xml"))
	}
	if err := env.Outputs(tool.Output{Flag: "junit", What: "results", Ours: ours}); err != nil {
		return o, err
	}
	for _, name := range env.Args {
		s, err := openSuite(name)
		if err != nil {
			return o, err
		}
		o.Suites = append(o.Suites, s)
	}
	if len(o.Command) == 0 {
		path, err := child.Sibling("runner-proc")
		if err != nil {
			return o, tool.Fail(tool.ExitUsage, err, "--exec COMMAND")
		}
		o.Command = []string{path, "run", "--world", "{world}"}
	}
	return o, nil
}

func run(ctx context.Context, env *tool.Env) error {
	o, err := options(env)
	if err != nil {
		return err
	}
	out := &output{env: env, json: o.JSON}
	failed := 0
	for _, s := range o.Suites {
		r := &runner{o: &o, s: s, out: out, ownExec: env.Flag.IsSet("exec")}
		n, err := r.run(ctx)
		if err != nil {
			return err
		}
		failed += n
	}
	if o.JUnit != "" {
		if err := tool.WriteFile(o.JUnit, out.junit.Write); err != nil {
			return err
		}
	}
	if failed > 0 {
		return tool.Failf(tool.ExitNo, "%d of %d cases did not pass", failed, len(out.junit.Cases))
	}
	return nil
}
