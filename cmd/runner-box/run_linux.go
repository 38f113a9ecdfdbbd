package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/box"
	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/confine"
	"github.com/runner-evidence/runner/cmd/internal/record"
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
	c, err := o.config()
	if err != nil {
		return err
	}
	r, err := record.New(o.Output)
	if err != nil {
		return err
	}
	defer r.Discard()
	signals := child.WatchAll()
	signals.All()
	files := env.Files()
	result, err := box.Run(c, files, r.File(), signals.C)
	if err != nil {
		return err
	}
	if err := r.Commit(); err != nil {
		return err
	}
	env.Infof("the command %s; %d names of the workspace differ", result.End, result.Changes)
	if code := result.End.Status(); code != 0 {
		return tool.Status(code)
	}
	return nil
}

// config completes what the box is to be.
func (o *Options) config() (box.Config, error) {
	state, environ, err := wrap.Take(child.Environ())
	if err != nil {
		return box.Config{}, err
	}
	if u := o.User.Credential(); u != nil {
		state.User = u
	}
	if state.Record > 0 {
		o.RunID = state.RunID
	}
	if state, o.Output, err = state.Join(schemas.StageBox, o.Output); err != nil {
		return box.Config{}, err
	}
	if o.ByDigest && o.Output == "" {
		return box.Config{}, tool.Usagef("--base-by-digest is about the record, and there is none: expected -o DIR")
	}
	c := box.Config{RunID: o.RunID, Base: o.Base, Kind: box.BaseNone, Workdir: o.Workdir, Fallback: o.Fallback, CPU: o.CPU, Grace: o.Grace,
		State: state, Rootless: !confine.MayAdminister(0), Pack: !o.ByDigest, Command: o.Command, Env: o.User.Environment(environ)}
	if state.Control > 0 { // the run's own grace time
		c.Grace = state.Grace
	}
	if len(c.Command) > 0 && strings.Contains(c.Command[0], "/") && !filepath.IsAbs(c.Command[0]) {
		if at, err := filepath.Abs(c.Command[0]); err == nil && wrap.Is(at, wrap.Dir()) { // one of ours, which is not in the workspace
			c.Command = append([]string{at}, c.Command[1:]...)
		}
	}
	if o.CPU != nil {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil || *o.CPU < 0 || !set.IsSet(*o.CPU) {
			return c, tool.BadValue("cpu", fmt.Sprint(*o.CPU), "the number of a processor that this process may run on: "+processors(&set))
		}
	}
	if o.Base == "" {
		return c, nil
	}
	real, err := filepath.EvalSymlinks(o.Base)
	if err != nil {
		return c, tool.CannotRead(o.Base, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(real, &st); err != nil {
		return c, tool.CannotRead(o.Base, err)
	}
	c.Base, c.Device, c.Inode = real, st.Dev, st.Ino
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		c.Kind = schemas.BaseDir
		if state.Record == 0 && o.Output != "" { // of a measured run it is in runner-exec's directory
			return c, outside(o.Output, real)
		}
	case unix.S_IFREG:
		c.Kind = schemas.BaseTar
	default:
		return c, tool.BadValue("base", o.Base, "a directory, or a tar, which may be gzipped")
	}
	return c, nil
}

// outside refuses a record in the base: it would be part of the workspace that it describes.
func outside(dir, base string) error {
	within, err := tool.Within(dir, base)
	if err != nil || !within {
		return err
	}
	return tool.Fail(tool.ExitUsage, fmt.Errorf("-o %s is in the base %s: the record would be part of the workspace that it describes", schemas.Text(dir), schemas.Text(base)),
		"take a directory outside of it, such as -o "+tool.ShellWord(filepath.Join(filepath.Dir(base), "record")))
}

// processors lists the first of a set.
func processors(set *unix.CPUSet) string {
	var list []int
	for n := range 1024 {
		if set.IsSet(n) && len(list) < 16 {
			list = append(list, n)
		}
	}
	return fmt.Sprint(list)
}
