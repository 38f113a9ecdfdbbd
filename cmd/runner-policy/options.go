package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/arguments"
	"github.com/runner-evidence/runner/cmd/internal/decisions"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const (
	logVariable   = decisions.Variable
	maxServerName = 64
	defaultGrace  = 5 * time.Second
)

// Options is one call of runner-policy.
type Options struct {
	Policy      string
	PolicyPath  string // absolute
	Log         decisions.Target
	LogDefault  bool // nothing named the log
	Name        string
	DenyAsError bool
	Audit       bool // decide and record, forward all
	RedactKey   arguments.Key
	CallIDKeys  []string
	MaxLine     int
	Grace       time.Duration
	Command     []string
	Program     string       // the path at which Command[0] was found
	HTTP        *httpOptions // nil: the server is a program
}

func options(env *tool.Env) (o Options, err error) {
	f := env.Flag
	o = Options{
		Policy: f.String("policy"), Name: f.String("name"),
		Audit: f.Bool("audit"), CallIDKeys: f.StringSlice("call-id-key"), Command: env.Args,
	}
	over, err := o.readHTTP(env)
	switch {
	case o.Policy == "":
		return o, tool.Missing("--policy FILE", "runner-policy --policy policy.yaml --log FILE -- SERVER [ARG…]")
	case err != nil:
		return o, err
	case over:
		// the server is not a program
	case len(o.Command) == 0 || o.Command[0] == "":
		return o, tool.Missing("SERVER", "runner-policy --policy "+o.Policy+" --log FILE -- SERVER [ARG…]")
	}
	if o.Grace, err = env.Duration("grace"); err != nil {
		return o, err
	}
	denyAs, err := env.Word("deny-as", "result", "error")
	if err != nil {
		return o, err
	}
	o.DenyAsError = denyAs == "error"
	for _, key := range o.CallIDKeys {
		if key == "" {
			return o, tool.BadValue("call-id-key", "", "a name")
		}
	}
	if o.RedactKey, err = arguments.ReadKey(f.String("redact-key")); err != nil {
		return o, tool.Usagef("--redact-key: %v", err)
	}
	longest, err := env.Size("max-line", 1<<10, 1<<30)
	if err != nil {
		return o, err
	}
	o.MaxLine = int(longest)
	if f.IsSet("name") && !validName(o.Name) {
		return o, tool.BadValue("name", o.Name, fmt.Sprintf("1 to %d of A-Z a-z 0-9 . _ -", maxServerName))
	}
	if o.Name == "" {
		o.Name = nameOf(o.Command[0])
	}
	return o, o.logTarget(f.String("log"), f.IsSet("log"))
}

// defaultLog is the log of a session outside of a run: beside the policy, one for each server.
func (o *Options) defaultLog() string {
	return strings.TrimSuffix(o.Policy, filepath.Ext(o.Policy)) + "." + o.Name + ".log.ndjson"
}

// logTarget reads FILE or fd:N. A session needs a log.
func (o *Options) logTarget(value string, given bool) (err error) {
	if o.Log, err = decisions.ParseTarget(value, given); err == nil && o.Log.Name == "" {
		o.Log, o.LogDefault = decisions.FileTarget(o.defaultLog()), true
	}
	return err
}

func validName(s string) bool {
	for i := range len(s) {
		if !nameByte(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= maxServerName
}
