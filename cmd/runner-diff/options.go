package main

import (
	"cmp"
	"fmt"
	"slices"
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

// maxBases is how many archives a baseline can have.
const maxBases = 1 << 12

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
	timeFlag  = "--" + tool.FlagGeneratedAt
	timeEpoch = tool.EnvEpoch
	timeClock = "clock"
)

func options(env *tool.Env) (opt *Options, err error) {
	opt = &Options{Report: env.Flag.String("report")}
	if err := env.NotEmpty("lock", "write-lock", "update-lock", "ignore", "fail-on", "report", tool.FlagGeneratedAt); err != nil {
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
	if err := cmp.Or(opt.alone(env), opt.outputs(env)); err != nil {
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
	compares := []string{"base", "ignore", "fail-on", "format", "report", tool.FlagGeneratedAt}
	refused := map[string][]string{modeLock: {"base"}, modeWrite: compares, modeUpdate: append(compares, "force"),
		modeExact: append(compares, "fold", "force"), modeFolds: append(compares, "fold", "force")}[opt.Mode]
	for _, flag := range refused {
		if env.Flag.IsSet(flag) {
			return tool.Usagef("--%s with --%s: expected one of them", flag, opt.Mode)
		}
	}
	switch {
	case env.Flag.Bool("force") && opt.Mode != modeWrite && (opt.Report == "" || opt.Report == "-"):
		return tool.Usagef("--force without --%s or --report: there is no file to replace", modeWrite)
	case opt.Report == "-" && env.Flag.IsSet("format"):
		return tool.Usagef("--report - and --format: both are for standard output, expected one of them")
	}
	return nil
}

// outputs refuses what would be replaced by mistake, before anything is read.
func (opt *Options) outputs(env *tool.Env) error {
	lock := tool.Output{Flag: modeWrite, What: "a lock file", Ours: tool.Begins(lockHead)}
	if opt.Report == "-" {
		return env.Outputs(lock)
	}
	return env.Outputs(lock, tool.Output{Flag: "report", What: "a report of runner-diff", Ours: tool.Begins(schemas.ReportBegins(schemas.VersionCapabilityDiff))})
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
	if opt.GeneratedAt, err = env.GeneratedAt(); err != nil {
		return err
	}
	if opt.GeneratedAt == "" {
		opt.now, opt.nowFrom = time.Now(), timeClock
		return nil
	}
	if opt.nowFrom = timeEpoch; env.Flag.IsSet(tool.FlagGeneratedAt) {
		opt.nowFrom = timeFlag
	}
	opt.now, err = time.Parse(time.RFC3339, opt.GeneratedAt)
	return err
}

// operands finds the archives.
func (opt *Options) operands(env *tool.Env) error {
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
	stdin := 0
	for _, name := range append(slices.Clone(opt.Bases), opt.New) {
		if name == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		return tool.Usagef("- is named %d times: standard input is one archive", stdin)
	}
	if len(opt.Bases) > maxBases {
		return tool.Usagef("%d baselines: at most %d are read", len(opt.Bases), maxBases)
	}
	return nil
}
