package main

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/box"
	"github.com/runner-evidence/runner/cmd/internal/identity"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Options is one call of runner-box.
type Options struct {
	Base     string // absolute, or ""
	Workdir  string
	Output   string
	ByDigest bool
	Fallback string
	CPU      *int
	User     *identity.Identity
	Grace    time.Duration
	RunID    string
	Command  []string
}

func options(env *tool.Env) (o Options, err error) {
	f := env.Flag
	o = Options{Output: f.String("o"), ByDigest: f.Bool("base-by-digest"), Command: env.Args}
	if err := env.NotEmpty("base", "workdir", "o", "user", "run-id"); err != nil {
		return o, err
	}
	if o.RunID, err = env.RunID(); err != nil {
		return o, err
	}
	o.RunID = cmp.Or(o.RunID, tool.NewRunID())
	if o.Fallback, err = env.Word("fallback", box.FallbackFail, box.FallbackCopy); err != nil {
		return o, err
	}
	if o.Grace, err = env.Duration("grace"); err != nil {
		return o, err
	}
	if base := f.String("base"); base != "" {
		if o.Base, err = filepath.Abs(base); err != nil {
			return o, err
		}
	}
	if f.IsSet("cpu") {
		n := f.Int("cpu")
		o.CPU = &n
	}
	if o.Workdir, err = workdir(f.String("workdir")); err != nil {
		return o, err
	}
	if o.User, err = identity.Of(env); err != nil {
		return o, err
	}
	switch {
	case len(o.Command) == 0:
		return o, tool.Missing("the command", "runner-box -- COMMAND")
	case o.Base == "" && (o.ByDigest || f.IsSet("fallback")):
		return o, tool.Usagef("--base-by-digest and --fallback are about a base: expected --base DIR or --base TAR")
	}
	return o, nil
}

// workdir checks where the workspace is to be.
func workdir(at string) (string, error) {
	if strings.IndexByte(at, 0) >= 0 || !path.IsAbs(at) || path.Clean(at) == "/" {
		return "", tool.BadValue("workdir", at, "an absolute path below the root")
	}
	at = path.Clean(at)
	for _, taken := range []string{"/proc", "/dev", "/sys"} {
		if at == taken || strings.HasPrefix(at, taken+"/") {
			return "", tool.BadValue("workdir", at, "a path outside of "+taken)
		}
	}
	for _, fresh := range []string{"/tmp", "/run", "/var/tmp"} {
		if at == fresh {
			return "", tool.BadValue("workdir", at, fmt.Sprintf("a path below %s, which the box has one of its own of", schemas.Text(fresh)))
		}
	}
	return at, nil
}
