// Runner-gate shows what a recorded run would change, lets a policy and people decide, and then changes it, once, so that it can be
// taken back.
package main

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const usage = `
runner-gate shows what a recorded run would change, and changes it once it is approved.

Usage:
  runner-gate plan ARCHIVE POLICY -o plan.json     (show plan.json prints it again)
  runner-gate approve --plan plan.json --key KEY -o approval.jsonl
  runner-gate commit ARCHIVE --plan plan.json POLICY --approval FILE --to DIR --journal JDIR
  runner-gate revert|status|log --journal JDIR     runner-gate serve --dir STATE …

Flags:
  --policy FILE       rules in YAML; all policies of a call must allow
  --policy-wasm FILE  Rego that OPA compiled; --data FILE and --entrypoint NAME belong to it
  --policy-exec CMD   a program: the input is its stdin, the decision its stdout
  --accept-partial    plan also from evidence that is not complete or clean
  -o FILE, --json     write the plan or the approval to FILE; print JSON in place of text
  --plan FILE         what is approved, committed or reverted
  --key FILE, --deny  sign with this private key; sign that it must not be
  --expires D, --actor TEXT, --comment TEXT  in force for D (24h); who signs, and why
  --approval FILE, --public-key FILE  from approve; a key that may, beside the policy's
  --to DIR, --journal JDIR  what is changed; all that is needed to go on, or back
  --header HOST/NAME=@FILE  a secret header of requests to HOST; --timeout D of each: 30s
  --listen ADDRESS, --dir STATE  of serve: 127.0.0.1:0; its archives, plans, approvals
  --force, -v, -q, -h, --help, --version  replace a FILE; say more, less; help; version

Exit codes:
  0 done   1 denied, not approved, in conflict   2 wrong call   4 this system cannot
  3 not a valid archive, plan, policy or journal   5 reading, writing or a request failed

Examples:
  runner-gate plan run.tar.gz --policy gate.yaml -o plan.json
`

// Words of the tool.
const (
	wordPlan    = "plan"
	wordShow    = "show"
	wordApprove = "approve"
	wordCommit  = "commit"
	wordRevert  = "revert"
	wordStatus  = "status"
	wordLog     = "log"
	wordServe   = "serve"
)

// flagsOf are the flags that belong to a word, beside those of all words.
var flagsOf = map[string][]string{
	wordPlan:    {"policy", "policy-wasm", "data", "entrypoint", "policy-exec", "accept-partial", "o"},
	wordShow:    {},
	wordApprove: {"plan", "key", "deny", "expires", "actor", "comment", "o"},
	wordCommit:  {"plan", "policy", "policy-wasm", "data", "entrypoint", "policy-exec", "approval", "public-key", "to", "journal", "header", "timeout"},
	wordRevert:  {"plan", "journal", "header", "timeout"},
	wordStatus:  {"journal"},
	wordLog:     {"journal"},
	wordServe:   {"policy", "policy-wasm", "data", "entrypoint", "policy-exec", "accept-partial", "key", "public-key", "actor", "expires", "to", "journal", "header", "timeout", "listen", "dir"},
}

var commands = map[string]func(context.Context, *tool.Env) error{
	wordPlan: plan, wordShow: show, wordApprove: approve, wordCommit: commit, wordRevert: revert, wordStatus: status, wordLog: logJournal, wordServe: serve,
}

func app() tool.App {
	return tool.App{
		Name: "runner-gate", Usage: usage,
		Words: []string{wordPlan, wordShow, wordApprove, wordCommit, wordRevert, wordStatus, wordLog, wordServe},
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "policy"}, &cli.StringFlag{Name: "policy-wasm"}, &cli.StringFlag{Name: "data"}, &cli.StringFlag{Name: "entrypoint"}, &cli.StringFlag{Name: "policy-exec"},
			&cli.StringFlag{Name: "o"}, &cli.BoolFlag{Name: "json"}, &cli.BoolFlag{Name: "accept-partial"}, &cli.StringFlag{Name: "plan"}, &cli.StringFlag{Name: "key"}, &cli.BoolFlag{Name: "deny"},
			&cli.DurationFlag{Name: "expires", Value: defaultExpires}, &cli.StringFlag{Name: "actor"}, &cli.StringFlag{Name: "comment"}, &cli.StringSliceFlag{Name: "approval"},
			&cli.StringSliceFlag{Name: "public-key"}, &cli.StringFlag{Name: "to"}, &cli.StringFlag{Name: "journal"}, &cli.StringSliceFlag{Name: "header"},
			&cli.DurationFlag{Name: "timeout", Value: defaultTimeout}, &cli.StringFlag{Name: "dir"}, &cli.StringFlag{Name: "listen", Value: defaultListen}, &cli.BoolFlag{Name: "force"}, &cli.BoolFlag{Name: "v"}, &cli.BoolFlag{Name: "q"}},
		Run: func(ctx context.Context, env *tool.Env) error {
			if err := belong(env); err != nil {
				return err
			}
			return commands[env.Command](ctx, env)
		},
	}
}

// belong refuses flags that the word does not take: one that does nothing would seem to.
func belong(env *tool.Env) error {
	for _, name := range env.Flag.LocalFlagNames() {
		if slices.Contains([]string{"json", "force", "v", "q"}, name) || slices.Contains(flagsOf[env.Command], name) {
			continue
		}
		var words []string
		for _, w := range app().Words {
			if slices.Contains(flagsOf[w], name) {
				words = append(words, w)
			}
		}
		if len(words) > 0 {
			return tool.Usagef("--%s belongs to %s, not to %s", name, strings.Join(words, ", "), env.Command)
		}
	}
	return nil
}

func main() { tool.Main(app()) }
