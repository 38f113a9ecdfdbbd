package main

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/exchange"
	"github.com/runner-evidence/runner/cmd/internal/record"
	"github.com/runner-evidence/runner/cmd/internal/still"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/cmd/internal/wrap"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/stream"
)

// chain is the command line of a replay behind runner-exec, made of what the archive has.
type chain struct {
	r    *recorded
	dir  string // of the files of this replay
	o    *Options
	args []string

	ticks int // descriptor of the record of the clock, or 0
}

// close gives back what the chain holds.
func (c *chain) close() {
	if c.ticks > 0 {
		unix.Close(c.ticks)
	}
}

// build makes the files that the wrappers need, and their command lines, in the recorded order. What the recorded run had no
// wrapper for is behind one that lets nothing out.
func (c *chain) build() error {
	order := c.r.env.Wrappers
	if !c.r.wrapped(schemas.StageNet) {
		order = append([]string{schemas.StageNet}, order...)
	}
	if !c.r.wrapped(schemas.StageBox) {
		order = append(order, schemas.StageBox)
		if n := len(order); n > 1 && order[n-2] == schemas.StageClock { // which has its files in the box
			order[n-2], order[n-1] = order[n-1], order[n-2]
		}
	}
	for _, w := range order {
		program, err := child.Sibling(w)
		if err != nil {
			return tool.Fail(tool.ExitIO, err)
		}
		var flags []string
		switch w {
		case schemas.StageNet:
			flags, err = c.network()
		case schemas.StageBox:
			flags, err = c.box()
		case schemas.StageClock:
			flags, err = c.clock()
		}
		if err != nil {
			return fmt.Errorf("preparing %s: %w", w, err)
		}
		c.args = append(append(append(c.args, program), flags...), "--")
	}
	for _, word := range c.r.env.Command {
		b, err := schemas.Untext(word)
		if err != nil {
			return fmt.Errorf("a word of the command: %w", err)
		}
		c.args = append(c.args, string(b))
	}
	return nil
}

// network writes the recording.
func (c *chain) network() ([]string, error) {
	if c.r.net == nil || c.r.net.Mode == schemas.NetModeDeny {
		return []string{"deny"}, nil
	}
	dir := filepath.Join(c.dir, "net")
	if err := os.MkdirAll(filepath.Join(dir, record.BlobDir), 0o700); err != nil {
		return nil, err
	}
	for _, e := range c.r.exchanges {
		for _, m := range []*schemas.NetMessage{&e.Request, e.Response} {
			if m == nil || m.SHA256 == "" {
				continue
			}
			at := filepath.Join(dir, record.BlobDir, strings.TrimPrefix(m.SHA256, "sha256:"))
			if err := os.Link(c.r.path(schemas.BlobMember(m.SHA256)), at); err != nil && !errors.Is(err, os.ErrExist) {
				return nil, err
			}
		}
	}
	lines := make([]any, 0, len(c.r.exchanges)+len(c.r.names)+2)
	for _, e := range c.r.exchanges {
		lines = append(lines, e)
	}
	for _, n := range c.r.names {
		lines = append(lines, n)
	}
	n := uint64(len(c.r.exchanges))
	lines = append(lines, c.r.net, &schemas.StageHealth{Schema: schemas.SchemaStageHealth, RunID: c.r.runID, Stage: schemas.StageNet, In: n, Out: n,
		Filtered: map[string]uint64{}, Counters: map[string]uint64{}, Facts: map[string]string{}, Notes: []string{}})
	if err := sealed(filepath.Join(dir, exchange.StreamFile), schemas.StreamNet, c.r.runID, lines); err != nil {
		return nil, err
	}
	flags := []string{"replay"}
	for _, name := range c.r.net.Headers {
		flags = append(flags, "--match-header", name)
	}
	return append(flags, dir), nil
}

// sealed writes a stream.
func sealed(file, name, runID string, lines []any) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 256<<10)
	w, err := stream.NewWriter(out, stream.Header{Stream: name, RunID: runID, Tool: "runner-replay", Version: tool.Version()})
	for i := 0; err == nil && i < len(lines); i++ {
		err = w.Write(lines[i])
	}
	if err == nil {
		err = w.Seal(schemas.StatusComplete)
	}
	return errors.Join(err, out.Flush())
}

// clock writes the ticks.
func (c *chain) clock() ([]string, error) {
	file := filepath.Join(c.dir, still.StreamFile)
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := (&still.Record{Clock: *c.r.clock, Ticks: c.r.ticks}).Write(f); err != nil {
		return nil, err
	}
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if c.ticks, err = wrap.Hand(int(in.Fd())); err != nil { // a box does not show the file
		return nil, err
	}
	return []string{"--replay", fmt.Sprintf("/proc/self/fd/%d", c.ticks)}, nil
}

// box builds the base.
func (c *chain) box() ([]string, error) {
	b := c.r.box
	if b == nil {
		return nil, nil
	}
	flags := []string{"--workdir", text(b.Workdir)}
	if b.CPU != nil {
		flags = append(flags, "--cpu", fmt.Sprint(*b.CPU))
	}
	switch {
	case b.Base == nil:
		return flags, nil
	case c.o.Base != "":
		return append(flags, "--fallback", "copy", "--base", c.o.Base), nil
	case b.Base.List == "":
		return flags, nil // which was said to be missing
	}
	dir := filepath.Join(c.dir, "base")
	return append(flags, "--fallback", "copy", "--base", dir), c.base(dir, b.Base.List)
}

func text(s string) string {
	if b, err := schemas.Untext(s); err == nil {
		return string(b)
	}
	return s
}

// base builds the base of the workspace from its list.
func (c *chain) base(dir, list string) error {
	f, err := os.Open(c.r.path(schemas.BlobMember(list)))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	var entries []tree.Entry
	var root *tree.Entry
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line, err := schemas.ParseBaseEntry(in.Bytes())
		if err != nil {
			return err
		}
		e, err := c.entry(line)
		if err != nil {
			return err
		}
		if e.Path == "." {
			root = e
			continue
		}
		entries = append(entries, *e)
	}
	if err := in.Err(); err != nil {
		return err
	}
	var owner *tree.Owner
	if os.Geteuid() != 0 {
		owner = &tree.Owner{UID: os.Geteuid(), GID: os.Getegid()}
	}
	open := func(e *tree.Entry) (io.ReadCloser, error) {
		return os.Open(c.r.path(schemas.BlobMembers + hex.EncodeToString(e.SHA256[:])))
	}
	if err := tree.Build(dir, entries, open, owner); err != nil || root == nil {
		return err
	}
	t := unix.NsecToTimespec(root.Modified)
	err = errors.Join(os.Chmod(dir, os.FileMode(root.Mode&0o777)), unix.UtimesNano(dir, []unix.Timespec{t, t}))
	if owner == nil {
		err = errors.Join(err, os.Chown(dir, int(root.UID), int(root.GID)))
	}
	return err
}

// entry is a line of the list as a tree has it.
func (c *chain) entry(l *schemas.BaseEntry) (*tree.Entry, error) {
	e := &tree.Entry{Kind: tree.Kind(l.Kind), Mode: l.Mode, UID: c.r.env.UID, GID: c.r.env.GID, Unread: l.Unread, Modified: l.Modified}
	for to, from := range map[*string]string{&e.Path: l.Path, &e.Target: l.Target, &e.Link: l.Link} {
		b, err := schemas.Untext(from)
		if err != nil {
			return nil, err
		}
		*to = string(b)
	}
	if l.UID != nil {
		e.UID, e.GID = *l.UID, *l.GID
	}
	if l.Size != nil {
		e.Size = *l.Size
	}
	if l.SHA256 != "" {
		if _, err := hex.Decode(e.SHA256[:], []byte(strings.TrimPrefix(l.SHA256, "sha256:"))); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// environment is the recorded one, with the secrets that this process was allowed to give.
func (c *chain) environment() (env []string, err error) {
	for _, v := range c.r.env.Env {
		name := text(v.Name)
		if secret(v.Value) {
			if slices.Contains(c.o.Env, v.Name) {
				env = append(env, name+"="+os.Getenv(name))
			}
			continue
		}
		b, err := schemas.Untext(v.Value)
		if err != nil {
			return nil, err
		}
		env = append(env, name+"="+string(b))
	}
	if c.ticks > 0 {
		return wrap.State{Ticks: c.ticks}.Environ(env)
	}
	return env, nil
}

// directory is where the first wrapper starts: the recorded one, if it is there.
func (c *chain) directory() string {
	dir := text(c.r.env.Cwd)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return dir
	}
	return cmp.Or(c.dir, "/")
}
