package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/apply"
	"github.com/runner-evidence/runner/cmd/internal/journal"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/cmd/internal/tree"
	"github.com/runner-evidence/runner/schemas"
)

// revert makes the changes of a replay in a copy of the base, as runner-gate does, and takes them back. It returns how long the way
// back took. That the copy is as before is checked.
func (c *chain) revert(ctx context.Context, now *recorded) (time.Duration, error) {
	dir := filepath.Join(c.dir, "target")
	if err := c.target(dir); err != nil {
		return 0, fmt.Errorf("a copy of the base: %w", err)
	}
	before, err := tree.Scan(dir, tree.Options{})
	if err != nil {
		return 0, err
	}
	list, err := apply.Transitions(now.changes)
	if err != nil {
		return 0, err
	}
	j, err := journal.Open(filepath.Join(c.dir, "journal"))
	if err != nil {
		return 0, err
	}
	defer j.Close()
	tx := &journal.Transaction{ID: now.identity, Dir: dir, Transitions: list, Content: now.content}
	if _, err := j.Commit(ctx, tx, nil); err != nil {
		return 0, fmt.Errorf("making the changes: %w", err)
	}
	begin := time.Now()
	if _, err := j.Revert(ctx, tx.ID, nil); err != nil {
		return 0, fmt.Errorf("taking the changes back: %w", err)
	}
	took := time.Since(begin)
	after, err := tree.Scan(dir, tree.Options{})
	if err != nil {
		return 0, err
	}
	if differs := tree.Diff(before, after); len(differs) > 0 {
		return 0, fmt.Errorf("after the way back %s is not as before (%s)", schemas.Text(differs[0].Path()), differs[0].Op)
	}
	return took, nil
}

// target makes the copy.
func (c *chain) target(dir string) error {
	b := c.r.box
	switch {
	case b.Base == nil:
		return os.Mkdir(dir, 0o755)
	case c.o.Base != "":
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		from, err := unix.Open(c.o.Base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(from)
		return tree.Copy(from, dir, nil)
	case b.Base.List == "":
		return errors.New("it is not in the archive")
	}
	return c.base(dir, b.Base.List)
}

// content opens the bytes of a file of the workspace.
func (r *recorded) content(digest string) (io.ReadCloser, error) {
	if digest == schemas.DigestOf("") {
		return io.NopCloser(strings.NewReader("")), nil
	}
	return os.Open(r.path(schemas.BlobMember(digest)))
}

// measure measures one way back. A run without a box has nothing to take back.
func (v *reverts) measure(ctx context.Context, c *chain, now *recorded) error {
	if now.box == nil || c.r.box == nil {
		return nil
	}
	took, err := c.revert(ctx, now)
	if err != nil {
		return tool.Fail(tool.ExitIO, fmt.Errorf("measuring the way back: %w", err))
	}
	v.n++
	v.took += took
	return nil
}
