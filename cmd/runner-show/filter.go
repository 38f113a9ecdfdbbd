package main

import (
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// filter chooses acts: by what they are, how they ended, and whose they are. Of flags of one
// kind one must fit, and of every kind that was asked for.
type filter struct {
	what, ended []func(*acts.Act) bool
	whose       []func(*acts.Act) bool
	words       []string // the flags, for messages
}

var whats = []struct {
	flag string
	is   func(*acts.Act) bool
}{
	{"writes", func(a *acts.Act) bool { return a.Write }},
	{"reads", func(a *acts.Act) bool { return a.Read }},
	{"execs", func(a *acts.Act) bool { return a.Group == acts.Executed }},
	{"net", (*acts.Act).Net},
}

var endings = []struct {
	flag string
	is   func(*acts.Act) bool
}{
	{"refused", func(a *acts.Act) bool { return a.Outcome == schemas.ActRefused }},
	{"failed", func(a *acts.Act) bool { return a.Outcome == schemas.ActFailed }},
}

func newFilter(env *tool.Env) (f filter, err error) {
	for _, w := range whats {
		if env.Flag.Bool(w.flag) {
			f.what, f.words = append(f.what, w.is), append(f.words, "--"+w.flag)
		}
	}
	for _, w := range endings {
		if env.Flag.Bool(w.flag) {
			f.ended, f.words = append(f.ended, w.is), append(f.words, "--"+w.flag)
		}
	}
	if err := env.NotEmpty("who", "process", "tool-call"); err != nil {
		return f, err
	}
	add := func(flag string, is func(*acts.Act) bool) {
		f.whose, f.words = append(f.whose, is), append(f.words, "--"+flag+" "+env.Flag.String(flag))
	}
	if who := env.Flag.String("who"); who != "" {
		add("who", onName(who))
	}
	if s := env.Flag.String("process"); s != "" {
		pid, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			return f, tool.BadValue("process", s, "a process id, as runner-show shows it")
		}
		add("process", func(a *acts.Act) bool { return uint64(a.Process.PID) == pid })
	}
	if id := env.Flag.String("tool-call"); id != "" {
		add("tool-call", func(a *acts.Act) bool { return slices.Contains(a.ToolCalls, id) })
	}
	return f, nil
}

// empty reports whether nothing was asked for.
func (f *filter) empty() bool { return len(f.words) == 0 }

func (f *filter) takes(a *acts.Act) bool {
	fits := func(is func(*acts.Act) bool) bool { return is(a) }
	return (len(f.what) == 0 || slices.ContainsFunc(f.what, fits)) &&
		(len(f.ended) == 0 || slices.ContainsFunc(f.ended, fits)) &&
		!slices.ContainsFunc(f.whose, func(is func(*acts.Act) bool) bool { return !is(a) })
}

// onName chooses acts on a path or below it, on an endpoint with or without its port, or, of
// a name without a slash, on any file that is called so.
func onName(typed string) func(*acts.Act) bool {
	name := schemas.Text(typed)
	if strings.Contains(name, "/") && !strings.HasPrefix(name, "unix:") {
		clean := path.Clean(name)
		if !path.IsAbs(clean) {
			if abs, err := filepath.Abs(typed); err == nil {
				clean = schemas.Text(abs)
			}
		}
		below := strings.TrimSuffix(clean, "/") + "/"
		return anyValue(func(v string) bool {
			v = strings.TrimPrefix(v, "unix:")
			return v == clean || strings.HasPrefix(v, below)
		})
	}
	return anyValue(func(v string) bool {
		host := v[:max(0, strings.LastIndexByte(v, ':'))]
		return v == name || path.Base(v) == name && strings.Contains(v, "/") || host == name || strings.Trim(host, "[]") == name
	})
}

func anyValue(is func(string) bool) func(*acts.Act) bool {
	return func(a *acts.Act) bool {
		for _, v := range []string{a.Path, a.NewPath, a.OldPath, a.Script, a.Endpoint, a.Name} {
			if v != "" && is(v) {
				return true
			}
		}
		return false
	}
}
