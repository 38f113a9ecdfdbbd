package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/arguments"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

const (
	logVariable   = schemas.EnvPolicyLog
	maxServerName = 64
	defaultGrace  = 5 * time.Second
)

// Options is one call of runner-policy.
type Options struct {
	Policy      string
	PolicyPath  string // absolute
	LogName     string // the value of --log, for messages
	LogFile     string // file of the log; "" if it is the descriptor LogFD
	LogFD       int
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
		Policy: f.String("policy"), LogName: f.String("log"), Name: f.String("name"),
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
	return o, o.logTarget(f.IsSet("log"))
}

// defaultLog is the log of a session outside of a run: beside the policy, one for each server.
func (o *Options) defaultLog() string {
	return strings.TrimSuffix(o.Policy, filepath.Ext(o.Policy)) + "." + o.Name + ".log.ndjson"
}

// logTarget reads FILE or fd:N. A session needs a log.
func (o *Options) logTarget(given bool) error {
	if !given {
		o.LogName = os.Getenv(logVariable)
	}
	if o.LogName == "" && !given {
		o.LogName, o.LogDefault = o.defaultLog(), true
	}
	if o.LogName == "" {
		return tool.Missing("--log FILE", "--log FILE or --log fd:N, or set "+logVariable)
	}
	if o.LogName == "-" {
		return tool.BadValue("log", "-", "a file: standard output carries the protocol; for a file with this name write ./-")
	}
	o.LogFile = o.LogName
	if n, ok := strings.CutPrefix(o.LogName, "fd:"); ok {
		fd, err := strconv.ParseUint(n, 10, 20)
		if err != nil || fd <= 1 {
			return tool.BadValue("log", o.LogName, "the number of a descriptor above 1; for a file with this name write ./"+o.LogName)
		}
		o.LogFile, o.LogFD = "", int(fd)
	}
	return nil
}

func validName(s string) bool {
	for i := range len(s) {
		if !nameByte(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= maxServerName
}

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }
