package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/junit"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/words"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
)

const (
	defaultBudget = 24 * time.Hour
	maxIterations = 100_000
	maxJobs       = 256
	maxFaults     = 64
)

// Options are the command line's choices.
type Options struct {
	Merge   []string // reports to join, or nil
	Targets []string // archives to judge, or nil
	Command []string
	Faults  []Fault // the command without a fault comes first
	Packs   []string
	Plan    Plan // without the packs
	Jobs    int
	Budget  time.Duration
	Timeout time.Duration // 0: none
	Exec    []string      // flags for runner-exec
	Dir     string        // or ""

	Report, Surface, JUnit, GeneratedAt string
	JSON                                bool
}

// Fault is what is put before the command.
type Fault struct {
	Name    string
	Wrapper []string
}

// noFault is the name of the command as it is.
const noFault = "none"

func options(env *tool.Env) (o Options, err error) {
	f := env.Flag
	o = Options{Jobs: f.Int("jobs"), Dir: f.String("dir"), Report: f.String("report"), Surface: f.String("surface"), JUnit: f.String("junit"), JSON: f.Bool("json")}
	if err := env.NotEmpty("report", "surface", "junit", "dir", "suite", "shard", "exec", tool.FlagGeneratedAt); err != nil {
		return o, err
	}
	if o.GeneratedAt, err = env.GeneratedAt(); err != nil {
		return o, err
	}
	if err := o.mode(env); err != nil {
		return o, err
	}
	if o.Merge == nil {
		if err := o.plan(env); err != nil {
			return o, err
		}
	}
	return o, outputs(env)
}

// program says where the command of a call begins.
func program(c *tool.Call) int {
	if c.Has("merge") || c.Has("target") {
		return tool.NoProgram
	}
	return 0
}

// mode finds out what is to be done, and refuses flags that are for something else.
func (o *Options) mode(env *tool.Env) error {
	f, belongs := env.Flag, []string{"iterations", "timeout", "exec", "dir", "fault"} // to a command
	switch {
	case f.IsSet("merge") && f.IsSet("target"):
		return tool.Usagef("--merge and --target: expected one of them")
	case f.IsSet("merge"):
		o.Merge = append(f.StringSlice("merge"), env.Args...)
		belongs = append(belongs, "jobs", "seed", "pack", "fail-on", "stop-on-first-failure", "max-failures", "time-budget", "shard", "suite")
	case f.IsSet("target"):
		o.Targets = append(f.StringSlice("target"), env.Args...)
	default:
		o.Command = env.Args
		if len(env.Args) == 0 {
			return tool.Missing("COMMAND", "runner-soak --iterations 10 -- COMMAND [ARG…]")
		}
		if !f.IsSet("iterations") {
			return tool.Missing("--iterations", "runner-soak --iterations 10 -- "+schemas.Text(env.Args[0]))
		}
		return nil
	}
	for _, name := range append(o.Merge, o.Targets...) {
		if name == "" || name[0] == '-' {
			return tool.Fail(tool.ExitUsage, fmt.Errorf("%q is no name of a file", name), "for a file with this name write ./"+schemas.Text(name))
		}
	}
	for _, name := range belongs {
		if f.IsSet(name) {
			return tool.Usagef("--%s is for runs of a command, and nothing is run here", name)
		}
	}
	return nil
}

// plan reads what the soak is.
func (o *Options) plan(env *tool.Env) (err error) {
	f := env.Flag
	p := Plan{Suite: f.String("suite"), Iterations: f.Int("iterations"), Limits: readLimits(),
		Policy: Policy{StopOnFirst: f.Bool("stop-on-first-failure"), MaxFailures: f.Int("max-failures")}}
	if o.Targets != nil {
		p.Iterations = len(o.Targets)
	}
	if p.Seed, err = strconv.ParseUint(f.String("seed"), 10, 64); err != nil || p.Seed > maxSeed {
		return tool.BadValue("seed", f.String("seed"), fmt.Sprintf("a number from 0 to %d", uint64(maxSeed)))
	}
	if p.Policy.FailOn, err = env.Word("fail-on", schemas.Severities[:]...); err != nil {
		return err
	}
	for _, n := range []struct {
		flag              string
		value, from, most int
	}{{"iterations", p.Iterations, 1, maxIterations}, {"jobs", o.Jobs, 1, maxJobs}, {"max-failures", p.Policy.MaxFailures, 1, maxIterations}} {
		if (n.value < n.from || n.value > n.most) && (f.IsSet(n.flag) || n.flag == "iterations") {
			return tool.BadValue(n.flag, strconv.Itoa(n.value), fmt.Sprintf("a number from %d to %d", n.from, n.most))
		}
	}
	if o.Budget, err = env.Duration("time-budget"); err != nil {
		return err
	}
	if o.Budget < time.Second {
		return tool.BadValue("time-budget", o.Budget.String(), "at least 1s")
	}
	p.Budget = int64((o.Budget + time.Second - 1) / time.Second)
	if o.Timeout, err = env.Duration("timeout"); err != nil {
		return err
	}
	if p.Shard, err = shard(f.String("shard"), p.Iterations); err != nil {
		return err
	}
	o.Packs, o.Plan = f.StringSlice("pack"), p
	if o.Exec, err = execFlags(f.String("exec")); err != nil {
		return err
	}
	o.Faults, err = faults(f.StringSlice("fault"))
	return err
}

var shardForm = pattern.New(`^([0-9]{1,6})/([0-9]{1,6})$`)

func shard(s string, iterations int) (*Shard, error) {
	if s == "" {
		return nil, nil
	}
	bad := tool.BadValue("shard", s, fmt.Sprintf("i/n, such as 1/4: i from 1 to n, n at most the %d iterations", iterations))
	m := shardForm.FindStringSubmatch(s)
	if m == nil {
		return nil, bad
	}
	i, _ := strconv.Atoi(m[1])
	n, _ := strconv.Atoi(m[2])
	if i < 1 || i > n || n > iterations {
		return nil, bad
	}
	return &Shard{i, n}, nil
}

var faultName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

func faults(flags []string) ([]Fault, error) {
	list := []Fault{{Name: noFault, Wrapper: []string{}}}
	for _, s := range flags {
		name, line, ok := strings.Cut(s, "=")
		if !ok || !faultName.MatchString(name) {
			return nil, tool.BadValue("fault", s, "NAME=WRAPPER, such as slow='nice -n 19', the name of A-Z a-z 0-9 _ . -")
		}
		if slices.ContainsFunc(list, func(f Fault) bool { return strings.EqualFold(f.Name, name) }) {
			return nil, tool.Usagef("--fault %s: the name %s is there already", schemas.Text(s), name)
		}
		wrapper, err := words.Split(line)
		if err != nil || len(wrapper) == 0 {
			return nil, tool.Usagef("--fault %s: expected the words of a command: %w", name, orEmpty(err))
		}
		list = append(list, Fault{name, wrapper})
	}
	if len(list) > maxFaults {
		return nil, tool.Usagef("%d faults, at most %d", len(flags), maxFaults-1)
	}
	return list, nil
}

func orEmpty(err error) error {
	if err == nil {
		return fmt.Errorf("there are none")
	}
	return err
}

// owned are flags of runner-exec that are decided here, or that name one file for all runs.
var owned = []string{"archive", "force", "stream", "spool-dir", "resume", "run-id", "keep", "timeout", "policy-log", "sdk-log", "help", "h", "version"}

func execFlags(line string) ([]string, error) {
	list, err := words.Split(line)
	if err != nil {
		return nil, tool.Usagef("--exec: %w", err)
	}
	for _, w := range list {
		name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
		if w == "--" || strings.HasPrefix(w, "-") && slices.Contains(owned, name) {
			return nil, tool.Usagef("--exec %s: runner-soak gives this to each run itself", w)
		}
	}
	return list, nil
}

// outputs refuses what would be replaced by mistake, before anything is run.
func outputs(env *tool.Env) error {
	report := func(flag, version string) tool.Output {
		return tool.Output{Flag: flag, What: "a " + version, Ours: tool.Begins(schemas.ReportBegins(version))}
	}
	return env.Outputs(report("report", schemas.VersionSoakReport), report("surface", schemas.VersionSoakSurface),
		tool.Output{Flag: "junit", What: "a report of JUnit", Ours: tool.Begins(junit.Begins)})
}
