package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/fold"
	"github.com/runner-evidence/runner/cmd/internal/nearest"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Values of --format.
const (
	formatText     = "text"
	formatMarkdown = "markdown"
	formatSARIF    = "sarif"
	formatJUnit    = "junit"
	formatJSON     = "json"
)

// Modes, by the flag that chooses them; "" compares archives.
const (
	modeLock   = "lock"
	modeWrite  = "write-lock"
	modeUpdate = "update-lock"
	modeExact  = "exact"
	modeFolds  = "folds"
)

// Options are the command line's choices.
type Options struct {
	Mode        string
	Lock        string // the file of a mode with a lock
	Bases       []string
	New         string
	Folds       *fold.Set
	Ignore      *ignore // or nil
	FailOn      []string
	Format      string
	Report      string
	GeneratedAt string // "" is not given
	now         time.Time
	nowFrom     string
}

// Where the time is from by which rules expire.
const (
	timeFlag  = "--generated-at"
	timeEpoch = "SOURCE_DATE_EPOCH"
	timeClock = "clock"
)

func options(env *tool.Env) (opt *Options, err error) {
	opt = &Options{Report: env.Flag.String("report")}
	if err := env.NotEmpty("lock", "write-lock", "update-lock", "ignore", "fail-on", "report", "generated-at"); err != nil {
		return nil, err
	}
	for _, mode := range []string{modeLock, modeWrite, modeUpdate, modeExact, modeFolds} {
		if !env.Flag.IsSet(mode) {
			continue
		}
		if opt.Mode != "" {
			return nil, tool.Usagef("--%s and --%s: expected one of them", opt.Mode, mode)
		}
		opt.Mode, opt.Lock = mode, env.Flag.String(mode)
	}
	if err := opt.alone(env); err != nil {
		return nil, err
	}
	if opt.Format, err = env.Word("format", formatText, formatMarkdown, formatSARIF, formatJUnit, formatJSON); err != nil {
		return nil, err
	}
	if opt.Folds, err = fold.New(env.Flag.StringSlice("fold")); err != nil {
		return nil, err
	}
	if opt.FailOn, err = groups(env); err != nil {
		return nil, err
	}
	if err := opt.time(env); err != nil {
		return nil, err
	}
	if name := env.Flag.String("ignore"); name != "" {
		if opt.Ignore, err = readIgnore(name, opt); err != nil {
			return nil, err
		}
	}
	return opt, opt.operands(env)
}

// alone refuses flags that have no meaning in a mode.
func (opt *Options) alone(env *tool.Env) error {
	compares := []string{"base", "ignore", "fail-on", "format", "report", "generated-at"}
	refused := map[string][]string{modeLock: {"base", "force"}, modeWrite: compares, modeUpdate: append(compares, "force"),
		modeExact: append(compares, "fold", "force"), modeFolds: append(compares, "fold", "force"), "": {"force"}}[opt.Mode]
	for _, flag := range refused {
		if !env.Flag.IsSet(flag) {
			continue
		}
		if opt.Mode == "" {
			return tool.Usagef("--%s without --%s: there is no file to replace", flag, modeWrite)
		}
		return tool.Usagef("--%s with --%s: expected one of them", flag, opt.Mode)
	}
	return nil
}

// groups reads --fail-on.
func groups(env *tool.Env) ([]string, error) {
	if !env.Flag.IsSet("fail-on") {
		return schemas.CapabilityGroups[:], nil
	}
	value, list := env.Flag.String("fail-on"), []string{}
	if value == "none" {
		return list, nil
	}
	for _, g := range schemas.CapabilityGroups {
		if slices.Contains(strings.Split(value, ","), g) {
			list = append(list, g)
		}
	}
	for _, word := range strings.Split(value, ",") {
		if !slices.Contains(schemas.CapabilityGroups[:], word) {
			hint := "expected some of " + strings.Join(schemas.CapabilityGroups[:], ",") + "; or none"
			if near := nearest.Word(word, schemas.CapabilityGroups[:]); near != "" {
				hint = "did you mean " + near + "?"
			}
			return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("--fail-on: there is no group %q", word), hint)
		}
	}
	return list, nil
}

// time reads what time it is: what the call says, or else the clock, which no report shows.
func (opt *Options) time(env *tool.Env) (err error) {
	epoch := os.Getenv(timeEpoch)
	switch text := env.Flag.String("generated-at"); {
	case text != "":
		opt.nowFrom = timeFlag
		if opt.now, err = time.Parse(time.RFC3339, text); err != nil {
			return tool.BadValue("generated-at", text, "a time such as 2026-11-22T00:00:00Z")
		}
	case epoch != "":
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil || seconds < 0 || seconds > 1<<37 {
			return tool.Usagef("SOURCE_DATE_EPOCH is %q, expected seconds since 1970", epoch)
		}
		opt.now, opt.nowFrom = time.Unix(seconds, 0), timeEpoch
	default:
		opt.now, opt.nowFrom = time.Now(), timeClock
		return nil
	}
	opt.GeneratedAt = opt.now.UTC().Format(time.RFC3339)
	return nil
}

// operands finds the archives.
func (opt *Options) operands(env *tool.Env) error {
	for i, name := range env.Args {
		if i > 0 && strings.HasPrefix(name, "-") && name != "-" {
			return tool.Fail(tool.ExitUsage, fmt.Errorf("flag %s comes after a file", name), "put flags before the files")
		}
	}
	opt.Bases = env.Flag.StringSlice("base")
	want, call := 1, "runner-diff --"+opt.Mode+" "+opt.Lock+" run.tar.gz"
	switch {
	case opt.Mode == modeFolds:
		return env.NoOperands()
	case opt.Mode == modeExact || opt.Mode == "" && len(opt.Bases) == 0:
		want, call = 2, "runner-diff base.tar.gz new.tar.gz"
	case opt.Mode == "":
		call = "runner-diff --base base.tar.gz new.tar.gz"
	}
	if len(env.Args) < want {
		return tool.Missing("an archive", call)
	}
	if len(env.Args) > want && opt.Mode != modeWrite {
		return tool.Fail(tool.ExitUsage, fmt.Errorf("unexpected operand %q", env.Args[want]), call)
	}
	switch {
	case opt.Mode == modeWrite:
		opt.Bases = env.Args
	case want == 2:
		opt.Bases, opt.New = env.Args[:1], env.Args[1]
	default:
		opt.New = env.Args[0]
	}
	if len(opt.Bases) > 1<<12 {
		return tool.Usagef("%d baselines: at most %d are read", len(opt.Bases), 1<<12)
	}
	return nil
}
