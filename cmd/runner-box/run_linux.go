package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/box"
	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/confine"
	"github.com/runner-evidence/runner/cmd/internal/tool"
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
	r, err := newRecord(o.Output)
	if err != nil {
		return err
	}
	defer r.discard()
	signals := child.WatchAll()
	defer signals.Stop()
	files := []*os.File{file(env.Stdin, os.Stdin), file(env.Stdout, os.Stdout), file(env.Stderr, os.Stderr)}
	result, err := box.Run(c, files, r.dir(), signals.C)
	if err != nil {
		return err
	}
	if err := r.commit(); err != nil {
		return tool.CannotWrite(o.Output, err)
	}
	env.Infof("the command %s; %d names of the workspace differ", result.End, result.Changes)
	if code := result.End.Status(); code != 0 {
		return tool.Status(code)
	}
	return nil
}

func file(v any, fallback *os.File) *os.File {
	if f, ok := v.(*os.File); ok {
		return f
	}
	return fallback
}

// config completes what the box is to be.
func (o *Options) config() (box.Config, error) {
	c := box.Config{RunID: o.RunID, Base: o.Base, Kind: box.BaseNone, Workdir: o.Workdir, Fallback: o.Fallback, CPU: o.CPU, Grace: o.Grace,
		User: o.User.Credential(), Rootless: !confine.MayAdminister(0), Pack: !o.ByDigest, Command: o.Command, Env: o.User.Environment(child.Environ())}
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
	case unix.S_IFREG:
		c.Kind = schemas.BaseTar
	default:
		return c, tool.BadValue("base", o.Base, "a directory, or a tar, which may be gzipped")
	}
	return c, nil
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

// record is the directory for the record. It gets its name when it is whole.
type record struct {
	path, temp string
	fd         *os.File
}

// newRecord makes the directory next to the place where it comes. nil is no record.
func newRecord(path string) (*record, error) {
	if path == "" {
		return nil, nil
	}
	if list, err := os.ReadDir(path); err == nil && len(list) > 0 {
		return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("the directory %s is not empty", schemas.Text(path)), "name a new one, or remove what is in it")
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, tool.CannotWrite(path, err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(path)), ".runner-box-")
	if err != nil {
		return nil, tool.CannotWrite(path, err)
	}
	r := &record{path: path, temp: temp}
	err = os.MkdirAll(filepath.Join(temp, box.BlobDir), 0o755)
	if err == nil {
		err = os.Chmod(temp, 0o755)
	}
	if err == nil {
		r.fd, err = os.Open(temp)
	}
	if err != nil {
		r.discard()
		return nil, tool.CannotWrite(path, err)
	}
	return r, nil
}

// dir is the directory, nil for none.
func (r *record) dir() *os.File {
	if r == nil {
		return nil
	}
	return r.fd
}

// commit gives the record its name. An empty directory of that name is replaced.
func (r *record) commit() error {
	if r == nil {
		return nil
	}
	if err := giveAll(r.temp); err != nil {
		return err
	}
	if err := os.Rename(r.temp, r.path); err != nil {
		return err
	}
	r.temp = ""
	return nil
}

// giveAll gives the record to the user who called sudo.
func giveAll(dir string) error {
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	slices.Reverse(all)
	for _, path := range all {
		if err == nil {
			var f *os.File
			if f, err = os.Open(path); err == nil {
				err = errors.Join(tool.GiveToInvoker(f), f.Close())
			}
		}
	}
	return err
}

func (r *record) discard() {
	if r == nil || r.temp == "" {
		return
	}
	if r.fd != nil {
		r.fd.Close()
	}
	os.RemoveAll(r.temp)
}
