package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/scratch"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

func run(ctx context.Context, env *tool.Env, o Options) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	own, err := scratch.New("runner-replay")
	if err != nil {
		return err
	}
	defer own.Remove()
	dir := own.Path
	then, err := unpack(ctx, env, o.Archive, filepath.Join(dir, "recorded"))
	if err != nil {
		return err
	}
	if o.Base != "" && (then.box == nil || then.box.Base == nil) {
		return tool.Fail(tool.ExitUsage, errors.New("the recorded run had no base, so there is nothing that --base could be"), "leave it out")
	}
	res := Result{SchemaVersion: schemas.VersionReplayResult, RunID: then.runID, Identity: then.identity, Verdict: verdictOpen, Missing: append([]string{}, then.missing(&o)...), Uncovered: then.uncovered(), Programs: append([]Uncontrolled{}, then.programs.uncontrolled()...), Layers: []Layer{}}
	if len(res.Missing) > 0 && (!o.Uncontrolled || then.env == nil) {
		if err := res.print(env, o); err != nil {
			return err
		}
		return tool.Status(tool.ExitCannot)
	}
	res.Verdict = verdictEqual
	var took time.Duration
	var back *reverts
	if o.Metrics != "" {
		back = new(reverts)
	}
	for n := range o.Runs {
		begin := time.Now()
		list, equal, err := replay(ctx, env, &o, then, filepath.Join(dir, fmt.Sprint("replay", n)), n+1 == o.Runs, back)
		if err != nil {
			return err
		}
		took += time.Since(begin)
		if back != nil {
			took -= back.last
		}
		res.Runs++
		if equal {
			res.EqualRuns++
		} else {
			res.Verdict = verdictDrifted
		}
		if !equal || res.Verdict == verdictEqual {
			res.Layers = list // of the last that differs, if one does
		}
		env.Infof("replay %d of %d: equal %v", n+1, o.Runs, equal)
	}
	if err := res.print(env, o); err != nil {
		return err
	}
	if o.Metrics != "" {
		if err := writeMetrics(o.Metrics, metrics(then, &res, took, back)); err != nil {
			return err
		}
	}
	if res.Verdict != verdictEqual {
		return tool.Status(tool.ExitNo)
	}
	return nil
}

// removeAll removes a directory in which a command's files may be that cannot be entered.
func removeAll(dir string) {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
	os.RemoveAll(dir)
}

// replay runs the command once more, and compares.
func replay(ctx context.Context, env *tool.Env, o *Options, then *recorded, dir string, last bool, back *reverts) (list []Layer, equal bool, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, false, tool.ScratchError(err)
	}
	defer removeAll(dir)
	c := &chain{r: then, dir: dir, o: o}
	defer c.close()
	if err := c.build(); err != nil {
		var coded *tool.Error
		if !errors.As(err, &coded) {
			err = tool.Fail(tool.ExitIO, err)
		}
		return nil, false, err
	}
	file := filepath.Join(dir, "again.tar.gz")
	if err := c.exec(ctx, env, file); err != nil {
		return nil, false, err
	}
	now, err := unpack(ctx, env, file, filepath.Join(dir, "again"))
	if err != nil {
		return nil, false, err
	}
	if list, equal, err = compareRuns(then, now); err != nil {
		return nil, false, tool.Fail(tool.ExitIO, err)
	}
	if b, a := then.box, now.box; b != nil && b.Base != nil && (a == nil || a.Base == nil || a.Base.Digest != b.Base.Digest) {
		digest := "none"
		if a != nil && a.Base != nil {
			digest = a.Base.Digest
		}
		list, equal = append([]Layer{{Name: "base", Then: b.Base.Digest, Now: digest}}, list...), false
	}
	if back != nil {
		begin := time.Now()
		if err := back.measure(ctx, c, now); err != nil {
			return nil, false, err
		}
		back.last = time.Since(begin)
	}
	if last && o.Output != "" {
		return list, equal, keep(file, o.Output)
	}
	return list, equal, nil
}

// keep gives the archive of the replay its name.
func keep(file, name string) error {
	return tool.WriteFile(name, func(w io.Writer) error {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	})
}

// exec runs runner-exec.
func (c *chain) exec(ctx context.Context, env *tool.Env, file string) error {
	program, err := child.Sibling(schemas.StageExec)
	if err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	args := []string{"--replayable", "--canonical-pids", "-q", "--run-id", c.r.runID, "--archive", file}
	if !c.r.kernel() {
		args = append(args, "--no-kernel")
	}
	if c.r.started != nil && slices.Contains(c.r.started.EnvKeys, schemas.EnvIntentLog) {
		args = append(args, "--intents")
	}
	if os.Geteuid() == 0 {
		args = append(args, "--user", fmt.Sprintf("%d:%d", c.r.env.UID, c.r.env.GID))
	}
	args = append(args, c.r.toolCalls(c.dir)...)
	if c.o.Timeout > 0 {
		args = append(args, "--timeout", c.o.Timeout.String())
	}
	cmd := exec.CommandContext(ctx, program, append(append(args, "--"), c.args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) } // it takes its cgroup away
	cmd.WaitDelay = 30 * time.Second
	if cmd.Env, err = c.environment(); err != nil {
		return tool.Fail(tool.ExitIO, err)
	}
	cmd.Dir = c.directory()
	var said bytes.Buffer
	cmd.Stderr = &said
	if c.o.Show {
		cmd.Stdout, cmd.Stderr = env.Stderr, io.MultiWriter(env.Stderr, &said)
	}
	if c.r.env.Stdin.Bytes > 0 {
		in, err := os.Open(c.r.path(schemas.BlobMember(c.r.env.Stdin.SHA256)))
		if err != nil {
			return tool.CannotRead("the recorded input", err)
		}
		defer in.Close()
		cmd.Stdin = in
	}
	err = cmd.Run()
	if ctx.Err() != nil {
		return tool.Failf(tool.ExitIO, "a signal ended the replay")
	}
	if _, missing := os.Stat(file); missing != nil {
		return tool.Failf(tool.ExitIO, "the replay left no archive: %w: %s", errors.Join(err, ctx.Err()), schemas.Text(tail(said.Bytes())))
	}
	return nil
}

// tail is the end of what a program said.
func tail(b []byte) string {
	b = bytes.TrimSpace(b)
	return string(b[max(0, len(b)-2000):])
}
