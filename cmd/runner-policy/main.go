// Command runner-policy runs between an MCP client and an MCP server that talk over
// standard input and output. It decides every tool call by a policy file, writes
// the decision to a log, and forwards what it allows, byte for byte.
//
// A line of the client reaches the server only after it was read completely and found to
// be a JSON-RPC message that all readers understand in the same way. A tool call must
// also be decided and recorded first. A line of the server is a message for the client
// only when its LF arrives, and that is forwarded only after the whole line was checked.
//
// If the proxy is killed, the kernel kills the server's process too (Linux). This does
// not apply to processes that the server started, nor to a server that gained privileges
// when it was executed. They only see that their pipes are closed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/decisions"
	"github.com/runner-evidence/runner/cmd/internal/policy"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

const usage = `
runner-policy decides the tool calls between an MCP client and its server.

Usage:
  runner-policy --policy FILE [flags] -- SERVER [ARG…]
  runner-policy --policy FILE --http LISTEN --upstream URL [flags]
  runner-policy --check FILE

It forwards messages byte for byte, answers what the policy denies itself, and
writes each decision to the log first. stdout carries only the protocol.

Flags:
  --policy FILE      the policy, YAML or JSON; SIGHUP reads it again
  --log FILE|fd:N    the decision log (default that of the run, or POLICY.NAME.log.ndjson)
  --http HOST:PORT   serve the one at --upstream URL; beyond this machine: --http-any
  --name NAME        name of the server in the log (default from its command)
  --deny-as result   deny with a tool result (isError); or error: a JSON-RPC error
  --audit            decide and record, but forward what the policy denies
  --call-id-key KEY  another key of params._meta that names the tool call
  --redact-key FILE  hex key of the commitments to arguments that the policy redacts
  --max-line 16M, --grace 5s  refuse longer lines; wait for the server's end, then kill it
  --check FILE       print what the policy means, or what is wrong with it; with
                     --call JSON how it decides {"name":…,"arguments":{…}}
  --suggest LOG      print a policy that allows what the sessions of a log did
  -v, -q             print progress; only errors and warnings; -h, --help; --version

Exit codes: the server's own; 128+N killed by signal N; 127 not found; 126 cannot be run; 125
own failure. Before it starts: 2 wrong call, 3 policy file not valid, 5 cannot read it

Examples:
  runner-policy --policy p.yaml --log decisions.ndjson -- mcp-server-files /work
`

func main() { tool.Main(app()) }

func app() tool.App {
	return tool.App{Name: "runner-policy", Usage: usage, Program: program, Flags: []cli.Flag{
		&cli.StringFlag{Name: "policy"},
		&cli.StringFlag{Name: "check"},
		&cli.StringFlag{Name: "call"},
		&cli.StringFlag{Name: "suggest"},
		&cli.StringFlag{Name: "log"},
		&cli.StringFlag{Name: "http"},
		&cli.StringFlag{Name: "upstream"},
		&cli.BoolFlag{Name: "http-any"},
		&cli.StringFlag{Name: "name"},
		&cli.StringFlag{Name: "deny-as", Value: "result"},
		&cli.BoolFlag{Name: "audit"},
		&cli.StringFlag{Name: "redact-key"},
		&cli.StringSliceFlag{Name: "call-id-key"},
		&cli.StringFlag{Name: "max-line", Value: "16M"},
		&cli.DurationFlag{Name: "grace", Value: defaultGrace},
		&cli.BoolFlag{Name: "q"},
		&cli.BoolFlag{Name: "v"},
	}, Run: run}
}

// program says where the server of a call begins.
func program(c *tool.Call) int {
	for _, flag := range []string{"suggest", "check", "call", "http", "upstream", "http-any"} {
		if c.Has(flag) {
			return tool.NoProgram
		}
	}
	return 0
}

func run(ctx context.Context, env *tool.Env) error {
	switch {
	case env.Flag.IsSet("suggest"):
		return suggest(env)
	case env.Flag.IsSet("check"):
		return check(env)
	case env.Flag.IsSet("call"):
		return tool.Missing("--check FILE", `runner-policy --check policy.yaml --call '{"name":"read_file","arguments":{"path":"/work/a"}}'`)
	}
	o, err := options(env)
	if err != nil {
		return err
	}
	p, err := policy.Open(o.Policy)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return tool.Fail(tool.ExitOwn, err)
	}
	if o.PolicyPath = o.Policy; !filepath.IsAbs(o.Policy) {
		o.PolicyPath = filepath.Join(dir, o.Policy)
	}
	if o.HTTP != nil && p.RelativeTo != "" {
		return tool.Fail(tool.ExitUsage, errHeld, "leave relative_to out: relative paths are not clear then, and denied where a rule looks at them")
	}
	if o.HTTP != nil {
		// there is no program to start
	} else if o.Program, err = child.Look(o.Command[0]); err != nil {
		return child.Refusal(err, nothingDone)
	} else if !filepath.IsAbs(o.Program) {
		o.Program = filepath.Join(dir, o.Program)
	}
	to, err := o.Log.Open(tool.ExitOwn, "a session without a log is refused; name one that can be written: --log FILE, or set "+logVariable)
	if err != nil {
		return err
	}
	defer to.Close()
	if p.RelativeTo != "" {
		if err := os.Chdir(p.RelativeTo); err != nil {
			return tool.Fail(tool.ExitOwn, fmt.Errorf("the directory of relative_to: %w", err), "relative paths of calls are taken to start there, so the server must be started there")
		}
		dir = p.RelativeTo
	}
	if o.LogDefault {
		env.Sayf("decisions go to %s", schemas.Text(o.Log.Name))
	}
	rules, again := newRulings(ruling{p, p.Digest}), reloader{env: env, file: o.PolicyPath, held: p.RelativeTo}
	if o.HTTP != nil {
		return runHTTP(ctx, env, o, rules, again, dir, decisions.Shared(to))
	}
	if tool.IsTerminal(env.Stdin) {
		env.Sayf("waiting for an MCP client's messages on standard input, which is a terminal; ^D ends the session")
	}
	return newSession(o, rules, dir, to).run(ctx, env, again)
}

// check prints an explanation of a policy to standard output, or of one call under it.
func check(env *tool.Env) error {
	if len(env.Args) > 0 || env.Flag.IsSet("policy") {
		return tool.Fail(tool.ExitUsage, errCheckOnly, "runner-policy --check FILE")
	}
	p, err := policy.Open(env.Flag.String("check"))
	if err != nil {
		return err
	}
	if env.Flag.IsSet("call") {
		return checkCall(p, env)
	}
	if err := env.Print(p.Explain); err != nil {
		return err
	}
	for _, w := range p.Warnings() {
		env.Warnf("%s", schemas.Text(w))
	}
	return nil
}

// errHeld means that nothing keeps a server to the directory that the policy takes it to be in.
var errHeld = errors.New("the policy has relative_to, and a server over HTTP is not started by the proxy, so it may start relative paths elsewhere")

var errCheckOnly = errors.New("--check takes one file and no server")
