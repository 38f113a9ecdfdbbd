package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/pack"
	"github.com/runner-evidence/runner/cmd/internal/scratch"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/verdict"
)

// linter lets runner-lint judge archives.
type linter struct {
	program string
	flags   []string
	packs   []schemas.PackRef
}

// findings are what runner-lint found in an archive.
type findings struct {
	identity string   // of the archive
	failing  bool     // at or above the threshold
	violated []string // rules that do not hold, of any severity
}

func newLinter(opt *Options) (*linter, error) {
	program, err := child.Sibling("runner-lint")
	if err != nil {
		return nil, tool.Fail(tool.ExitIO, err)
	}
	l := &linter{program: program, packs: opt.Plan.Packs, flags: []string{"--fail-on", opt.Plan.Policy.FailOn}}
	for _, p := range opt.Packs {
		l.flags = append(l.flags, "--pack="+p)
	}
	return l, nil
}

// judge runs runner-lint over one archive. Its report goes to a file of its own; its text is for
// people and is not kept.
func (l *linter) judge(ctx context.Context, path string) (*findings, error) {
	dir, err := scratch.New("runner-soak-lint")
	if err != nil {
		return nil, err
	}
	defer dir.Remove()
	report := filepath.Join(dir.Path, "lint.json")
	var said bytes.Buffer
	c := exec.CommandContext(ctx, l.program, append(slices.Clone(l.flags), "--report", report, "--", path)...)
	c.Stderr = &said
	err = c.Run()
	var ended *exec.ExitError
	if err != nil && (!errors.As(err, &ended) || ended.ExitCode() != tool.ExitNo) {
		line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		return nil, fmt.Errorf("runner-lint: %w: %s", err, verdict.Printable(line, maxMessage))
	}
	b, readErr := tool.ReadFile(report, maxReport)
	if readErr != nil {
		return nil, readErr
	}
	r, parseErr := schemas.ParseLintReport(b)
	switch {
	case parseErr != nil:
		return nil, parseErr
	case r.Passed != (err == nil):
		return nil, fmt.Errorf("runner-lint: its report says passed=%t, its exit code %d", r.Passed, c.ProcessState.ExitCode())
	case !slices.Equal(r.Packs, l.packs):
		return nil, errors.New("runner-lint: its packs are not those with which this began")
	}
	f := &findings{identity: r.Identity, failing: !r.Passed}
	for i := range r.Results {
		if r.Results[i].Outcome != schemas.RuleHolds {
			f.violated = append(f.violated, r.Results[i].Rule)
		}
	}
	slices.Sort(f.violated)
	return f, nil
}

// packs reads the packs as runner-lint does.
func packs(names []string) (refs []schemas.PackRef, err error) {
	list, err := pack.OpenAll(names)
	for _, p := range list {
		refs = append(refs, p.PackRef)
	}
	return refs, err
}
