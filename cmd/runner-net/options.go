package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/allow"
	"github.com/runner-evidence/runner/cmd/internal/arguments"
	"github.com/runner-evidence/runner/cmd/internal/exchange"
	"github.com/runner-evidence/runner/cmd/internal/identity"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Options is one call that runs a command.
type Options struct {
	Rules    *allow.Rules
	Replay   *exchange.Recording
	Upstream map[string]string
	Output   string
	Keep     []string
	Take     []string
	Key      arguments.Key
	Match    []string
	Roots    *x509.CertPool
	User     *identity.Identity
	RunID    string
	Command  []string

	done func() // after the replay, or nil
}

func options(ctx context.Context, env *tool.Env) (o Options, err error) {
	f := env.Flag
	o = Options{Output: f.String("o"), Keep: f.StringSlice("keep-header"), Take: f.StringSlice("redact-header"), Match: f.StringSlice("match-header"), Command: env.Args}
	if err := env.NotEmpty("allow", "o", "redact-key", "live-ca", "user", "run-id"); err != nil {
		return o, err
	}
	for _, name := range []string{"allow", "upstream", "live-ca"} {
		if f.IsSet(name) && env.Command != "record" {
			return o, tool.Usagef("--%s is about what leaves this machine: expected it with record, not with %s", name, env.Command)
		}
	}
	if env.Command == "replay" {
		if len(o.Command) == 1 {
			return o, tool.Missing("the recording or the command", "runner-net replay RECORD -- COMMAND")
		}
		if len(o.Command) < 2 || o.Command[1] != "--" {
			return o, tool.Missing("the recording", "runner-net replay RECORD -- COMMAND")
		}
		if o.Replay, o.done, err = recording(ctx, env, o.Command[0]); err != nil {
			return o, err
		}
		if name := o.Replay.Unmatched(o.Match); name != "" {
			return o, tool.Fail(tool.ExitUsage, fmt.Errorf("--match-header %s: the recording does not have its values, which were taken out without a key", schemas.Text(name)),
				"record with --keep-header "+schemas.Text(name)+", or with --redact-key FILE here and there")
		}
		o.Command = o.Command[2:]
	}
	if len(o.Command) == 0 {
		return o, tool.Missing("the command", "runner-net "+env.Command+" -- COMMAND")
	}
	if o.RunID, err = env.RunID(); err != nil {
		return o, err
	}
	o.RunID = cmp.Or(o.RunID, tool.NewRunID())
	if name := f.String("allow"); name != "" {
		if o.Rules, err = allow.Read(name); err != nil {
			return o, err
		}
	}
	if o.Upstream, err = upstreams(f.StringSlice("upstream")); err != nil {
		return o, err
	}
	if o.Key, err = arguments.ReadKey(f.String("redact-key")); err != nil {
		return o, tool.Fail(tool.ExitUsage, err)
	}
	if name := f.String("live-ca"); name != "" {
		if o.Roots, err = authorities(name); err != nil {
			return o, err
		}
	}
	if o.User, err = identity.Of(env); err != nil {
		return o, err
	}
	for _, u := range o.Rules.Inward() {
		port := strconv.Itoa(int(cmp.Or(u.Port, 80)))
		env.Warnf("the rule %s lets nothing out: %s is the command itself, in its own network; for a server of this machine, take another name: {host: service.test, port: %s} and --upstream service.test:%s=127.0.0.1:%s",
			u.ID, u.Host, port, port, port)
	}
	return o, nil
}

// upstreams reads where services are.
func upstreams(list []string) (map[string]string, error) {
	all := map[string]string{}
	for _, text := range list {
		name, to, ok := strings.Cut(text, "=")
		host, port, err := net.SplitHostPort(name)
		_, toPort, toErr := net.SplitHostPort(to)
		for _, p := range []string{port, toPort} {
			if n, e := strconv.ParseUint(p, 10, 16); e != nil || n == 0 {
				ok = false
			}
		}
		if !ok || err != nil || toErr != nil || host == "" {
			return nil, tool.BadValue("upstream", text, "NAME:PORT=HOST:PORT")
		}
		all[strings.ToLower(name)] = to
	}
	return all, nil
}

// authorities are those of the system and of a file.
func authorities(name string) (*x509.CertPool, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, tool.CannotRead(name, err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(b) {
		return nil, tool.BadValue("live-ca", name, "a file with certificates, as PEM")
	}
	return pool, nil
}
