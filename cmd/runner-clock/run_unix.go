//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/record"
	"github.com/runner-evidence/runner/cmd/internal/scratch"
	"github.com/runner-evidence/runner/cmd/internal/still"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/wrap"
	"github.com/runner-evidence/runner/schemas"
)

func run(_ context.Context, env *tool.Env) error {
	if env.Flag.Bool("probe") {
		return probe(env)
	}
	o, err := options(env)
	if err != nil {
		return err
	}
	program, err := child.Look(o.Command[0])
	if err != nil {
		return child.Refusal(err, nothingDone)
	}
	state, environ, err := wrap.Take(child.Environ())
	if err != nil {
		return err
	}
	if u := o.User.Credential(); u != nil {
		state.User = u
	}
	var dir string // of the record in a measured run
	if state.Record > 0 {
		o.Clock.RunID = state.RunID
	}
	if state, dir, err = state.Join(schemas.StageClock, o.Output); err != nil {
		return err
	}
	next := wrap.Is(program, wrap.Dir())
	if next && filepath.Base(program) == schemas.StageBox {
		return tool.Fail(tool.ExitUsage, errors.New("runner-box after runner-clock: the box has a /tmp of its own, and not what runner-clock puts there"), "runner-box -- runner-clock -- COMMAND")
	}
	p, err := newPlace(o, state)
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	defer p.remove()
	end, err := start(env, o, program, state, p.settings.Environ(o.User.Environment(environ), p.shims), next)
	if err != nil {
		return child.Refusal(err, nothingDone)
	}
	r := still.Record{Clock: o.Clock}
	if err := r.Gather(p.settings.File); err != nil {
		return tool.CannotRead("the ticks of the clock", err)
	}
	if err := write(&r, dir, state.Record > 0); err != nil {
		return err
	}
	tell(env, o, &r)
	if code := end.Status(); code != 0 {
		return tool.Status(code)
	}
	return nil
}

// write writes the record: a file or, in a measured run, a directory as those of the other wrappers.
func write(r *still.Record, place string, measured bool) error {
	if place == "" {
		return nil
	}
	if !measured {
		return tool.WriteFile(place, r.Write)
	}
	dir, err := record.New(place)
	if err != nil {
		return err
	}
	defer dir.Discard()
	f, err := os.Create(filepath.Join(fmt.Sprintf("/proc/self/fd/%d", dir.File().Fd()), still.StreamFile))
	if err == nil {
		err = errors.Join(r.Write(f), f.Sync(), f.Close())
	}
	if err != nil {
		return tool.CannotWrite(still.StreamFile, err)
	}
	return dir.Commit()
}

// nothingDone completes the error of a program that was not started.
const nothingDone = "nothing was run, nothing was written"

// place is the directory of one run.
type place struct {
	shims    string
	run      *scratch.Dir
	settings still.Settings
}

// runEnd is what the names of the directories of runs end with. No other name in ours has it.
const runEnd = ".run"

var ofRun = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}\` + runEnd + `$`)

// newPlace makes the directories. Their names are the same each time in a box, whose /tmp is its own.
func newPlace(o Options, state wrap.State) (*place, error) {
	uid := os.Geteuid()
	base := filepath.Join("/tmp", "runner-clock-"+strconv.Itoa(uid))
	if err := still.Ours(base); err != nil {
		return nil, err
	}
	if err := still.Install(base); err != nil {
		return nil, err
	}
	scratch.Sweep(base, ofRun)
	run := filepath.Join(base, o.Clock.RunID+runEnd)
	if state.Boxed {
		run = filepath.Join(base, "run")
	}
	own, err := scratch.At(run, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: another run has this id", err)
	}
	if err != nil {
		return nil, err
	}
	p := &place{shims: base, run: own}
	file := filepath.Join(run, "clock")
	err = os.Mkdir(file+".d", 0o755)
	if u := state.User; u != nil && err == nil {
		err = errors.Join(os.Chown(run, int(u.UID), int(u.GID)), os.Chown(file+".d", int(u.UID), int(u.GID)))
	}
	p.settings = still.Settings{Seed: o.Clock.Seed, Start: o.Clock.Start, File: file, Crypto: o.Clock.Crypto == schemas.CryptoSystem, Only: o.Clock.Runtimes}
	p.settings.Record, p.settings.Replay = filepath.Join(run, "record"), o.Replay
	if err == nil { // in a run that is recorded too: both do the same
		err = still.Plain(p.settings.Record, o.Ticks)
	}
	if err != nil {
		p.remove()
		return nil, err
	}
	return p, nil
}

func (p *place) remove() { p.run.Remove() }

// start runs the command, and passes signals on until it has ended.
func start(env *tool.Env, o Options, program string, state wrap.State, environ []string, next bool) (child.Ending, error) {
	c := child.Options{Name: o.Command[0], Program: program, Args: o.Command, Env: environ, Files: env.Files()}
	signals := child.WatchAll()
	signals.All()
	p, err := state.Begin(c, wrap.Dir(), nil)
	if err != nil {
		return child.Ending{}, err
	}
	ended := make(chan child.Ending, 1)
	go func() { ended <- p.Wait() }()
	for {
		select {
		case end := <-ended:
			if !next {
				state.Report(end, o.Command)
			}
			return end, nil
		case sig := <-signals.C:
			if !child.FromTerminal(sig) {
				p.Signal(sig)
			}
		}
	}
}

// tell says what was not as it should be.
func tell(env *tool.Env, o Options, r *still.Record) {
	if r.Clock.Bad > 0 {
		env.Warnf("%d lines of the file of ticks are none: somebody else wrote them, or there were too many", r.Clock.Bad)
	}
	if r.Clock.Lost > 0 {
		env.Warnf("%d ticks were not written: a process had more than 100,000, or its file could not be written", r.Clock.Lost)
	}
	if o.Replay {
		if n := still.Differ(o.Ticks, r.Ticks); n >= 0 {
			env.Warnf("the clock was used in another way than in the record, from tick %d", n)
		}
	}
	env.Infof("seed %s, start %s, %d ticks", r.Clock.Seed, r.Clock.Start, len(r.Ticks))
}

// probe says which runtimes there are.
func probe(env *tool.Env) error {
	for _, name := range schemas.Runtimes {
		program := map[string]string{"node": "node", "python": "python3"}[name]
		_, err := child.Look(program)
		if err := env.Feature(name, err); err != nil {
			return err
		}
	}
	return nil
}
