package main

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

const (
	logVariable   = "ASSAY_RUNNER_POLICY_DECISION_LOG"
	maxServerName = 64
	defaultGrace  = 5 * time.Second
)

// Options is one call of runner-policy.
type Options struct {
	Policy      string
	LogName     string // as it was given
	LogFile     string // or descriptor LogFD
	LogFD       int
	Name        string
	DenyAsError bool
	CallIDKeys  []string
	MaxLine     int
	Grace       time.Duration
	Command     []string
	Program     string // the file that is Command[0]
}

func options(env *tool.Env) (o Options, err error) {
	f := env.Flag
	o = Options{
		Policy: f.String("policy"), LogName: f.String("log"), Name: f.String("name"),
		CallIDKeys: f.StringSlice("call-id-key"), Grace: f.Duration("grace"), Command: env.Args,
	}
	switch {
	case o.Policy == "":
		return o, tool.Fail(tool.ExitUsage, errors.New("no policy file"), "runner-policy --policy policy.yaml --log FILE -- SERVER [ARG…]")
	case len(o.Command) == 0 || o.Command[0] == "":
		return o, tool.Fail(tool.ExitUsage, errors.New("no server to start"), "runner-policy --policy "+o.Policy+" --log FILE -- SERVER [ARG…]")
	case o.Grace < 0:
		return o, tool.Usagef("--grace must not be negative")
	}
	switch f.String("deny-as") {
	case "result":
	case "error":
		o.DenyAsError = true
	default:
		return o, tool.Usagef("--deny-as %q: want result or error", f.String("deny-as"))
	}
	for _, key := range o.CallIDKeys {
		if key == "" {
			return o, tool.Usagef("--call-id-key is empty")
		}
	}
	if o.MaxLine, err = parseSize(f.String("max-line")); err != nil {
		return o, err
	}
	if err := o.logTarget(f.IsSet("log")); err != nil {
		return o, err
	}
	if f.IsSet("name") && !validName(o.Name) {
		return o, tool.Usagef("--name %q: want 1 to %d of A-Z a-z 0-9 . _ -", o.Name, maxServerName)
	}
	if o.Name == "" {
		o.Name = nameOf(o.Command[0])
	}
	return o, nil
}

// logTarget reads FILE or fd:N. There is no session without a log.
func (o *Options) logTarget(given bool) error {
	if !given {
		o.LogName = os.Getenv(logVariable)
	}
	if o.LogName == "" {
		return tool.Fail(tool.ExitUsage, errors.New("no decision log"), "--log FILE or --log fd:N, or set "+logVariable)
	}
	if o.LogName == "-" {
		return tool.Usagef("--log -: standard output belongs to the protocol; a file of that name is ./-")
	}
	o.LogFile = o.LogName
	if n, ok := strings.CutPrefix(o.LogName, "fd:"); ok {
		fd, err := strconv.ParseUint(n, 10, 20)
		if err != nil || fd <= 1 {
			return tool.Usagef("--log %s: want the number of a descriptor above 1; a file of that name is ./%s", o.LogName, o.LogName)
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

// parseSize reads a number of bytes with K or M behind it.
func parseSize(s string) (int, error) {
	digits, unit := s, 1
	for suffix, n := range map[string]int{"K": 1 << 10, "M": 1 << 20} {
		if d, ok := strings.CutSuffix(s, suffix); ok {
			digits, unit = d, n
		}
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n*uint64(unit) < 1024 || n*uint64(unit) > 1<<30 {
		return 0, tool.Usagef("--max-line %q: want bytes from 1K to 1024M, like 16M", s)
	}
	return int(n) * unit, nil
}

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }
