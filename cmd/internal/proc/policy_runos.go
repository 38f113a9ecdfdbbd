package proc

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/strict"
)

// The schema x07.run-os-policy@0.1.0. Of its sections only process is about requests; the others are about what a
// program of that implementation does itself, and are only checked for being there.

const (
	maxBig      = 256 << 20
	maxBigBoth  = 512 << 20
	maxProcs    = 1024
	maxPattern  = 256
	defaultText = 4096
	defaultMany = 64
)

type runOS struct {
	enabled                    bool
	execs, prefixes            []string // clean
	patterns                   []liteRegexp
	keys                       []string
	cwd, hidden                bool
	roots                      []string
	limits                     ruleLimits
	exe, argc, arg, key, value uint64
}

func (r *policyReader) runOS(doc *yaml.Node, p *Policy) {
	sections := []string{"limits", "fs", "net", "env", "time", "process"}
	top := r.Object(doc, "the policy", append([]string{"schema_version", "policy_id", "notes", "db", "language", "threads"}, sections...)...)
	if !r.required(doc, top, "the policy", append([]string{"policy_id"}, sections...)...) {
		return
	}
	for _, s := range append(sections, "db", "language", "threads") {
		if f, ok := top[s]; ok && f.Value.Kind != yaml.MappingNode {
			r.Bad(f.Value, s+" is "+strict.Kind(f.Value), "an object", "")
		}
	}
	n := top["process"].Value
	o := r.Object(n, "process", "enabled", "allow_spawn", "max_live", "max_spawns", "allow_execs", "allow_exec_prefixes", "allow_args_regex_lite", "allow_env_keys", "allow_exec", "allow_exit",
		"max_exe_bytes", "max_args", "max_arg_bytes", "max_env", "max_env_key_bytes", "max_env_val_bytes", "max_runtime_ms", "max_stdout_bytes", "max_stderr_bytes", "max_total_bytes", "max_stdin_bytes",
		"kill_on_drop", "kill_tree", "allow_cwd", "allow_cwd_roots")
	if !r.required(n, o, "process", "enabled", "allow_spawn", "max_live", "max_spawns", "allow_exec", "allow_exit") {
		return
	}
	r.boolean(o, "allow_exec", false)
	r.boolean(o, "allow_exit", false)
	spawn := r.boolean(o, "allow_spawn", false)
	x := &runOS{enabled: r.boolean(o, "enabled", false) && spawn, cwd: r.boolean(o, "allow_cwd", false)}
	p.MaxLive, p.MaxSpawns = uint32(r.number(o, "max_live", maxProcs, 0)), r.number(o, "max_spawns", maxProcs, 0)
	p.KillOnDrop, p.KillTree = r.boolean(o, "kill_on_drop", true), r.boolean(o, "kill_tree", true)
	for _, s := range r.texts(o, "allow_execs", 256, maxText, plain) {
		x.execs = append(x.execs, path.Clean(s))
	}
	for _, s := range r.texts(o, "allow_exec_prefixes", 256, maxText, plain) {
		x.prefixes = append(x.prefixes, path.Clean(s))
	}
	for _, s := range r.texts(o, "allow_args_regex_lite", 128, maxPattern, func(s string) string {
		_, err := parseLite(s)
		return firstText(plain(s), err)
	}) {
		re, _ := parseLite(s)
		x.patterns = append(x.patterns, re)
	}
	x.keys, x.roots = r.texts(o, "allow_env_keys", 256, 256, plain), r.texts(o, "allow_cwd_roots", 128, maxText, plain)
	x.exe, x.argc, x.arg = r.number(o, "max_exe_bytes", 1<<20, defaultText), r.number(o, "max_args", 1024, defaultMany), r.number(o, "max_arg_bytes", 1<<20, defaultText)
	x.key, x.value = r.number(o, "max_env_key_bytes", 4096, 256), r.number(o, "max_env_val_bytes", 1<<20, defaultText)
	x.limits = ruleLimits{r.number(o, "max_runtime_ms", maxTimeout, 0), r.number(o, "max_stdout_bytes", maxBig, 0), r.number(o, "max_stderr_bytes", maxBig, 0),
		r.number(o, "max_total_bytes", maxBigBoth, 0), r.number(o, "max_stdin_bytes", maxBig, 0), r.number(o, "max_env", 1024, defaultMany), NoLimit}
	if f, ok := top["fs"]; ok && f.Value.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(f.Value.Content); i += 2 {
			if f.Value.Content[i].Value == "deny_hidden" {
				x.hidden = f.Value.Content[i+1].Value == "true"
			}
		}
	}
	r.sense(o, n, spawn, p, x)
	p.decider = x
}

// sense checks what one key asks of others.
func (r *policyReader) sense(o map[string]strict.Field, n *yaml.Node, spawn bool, p *Policy, x *runOS) {
	for _, c := range []struct {
		wrong bool
		what  string
	}{
		{spawn && len(x.execs)+len(x.prefixes) == 0, "allow_spawn without allow_execs and allow_exec_prefixes"},
		{spawn && p.MaxLive == 0, "allow_spawn with max_live 0"},
		{spawn && p.MaxSpawns == 0, "allow_spawn with max_spawns 0"},
		{spawn && x.limits.timeout == 0, "allow_spawn with max_runtime_ms 0"},
		{x.cwd && len(x.roots) == 0, "allow_cwd without allow_cwd_roots"},
	} {
		if c.wrong {
			at := n
			if f, ok := o[strings.Fields(c.what)[0]]; ok {
				at = f.Value
			}
			r.Bad(at, c.what, "both, or neither", "")
		}
	}
}

// plain says what is wrong with an element of a list: others pass lists on with ; between the elements.
func plain(s string) string {
	switch {
	case s == "":
		return "it is empty"
	case strings.Contains(s, ";"):
		return "it has a ;"
	}
	return ""
}

func firstText(s string, err error) string {
	if s == "" && err != nil {
		return err.Error()
	}
	return s
}

func (x *runOS) decide(q *Request, c *Caps) Verdict {
	if !x.enabled {
		return deny("no process may be started")
	}
	timeout, why := x.limits.fit(q, c)
	if why != "" {
		return denyLimit(why)
	}
	if why := x.fits(q); why != "" {
		return deny("%s", why)
	}
	program := cleaned(q.Argv[0])
	if slices.Contains(x.execs, program) {
		return Verdict{Allow: true, RuleID: "allow_execs", Program: program, TimeoutMS: timeout}
	}
	for _, dir := range x.prefixes {
		if below(program, dir) && program != dir {
			return Verdict{Allow: true, RuleID: "allow_exec_prefixes", Program: program, Below: dir, TimeoutMS: timeout}
		}
	}
	return deny("the program is neither one of allow_execs nor below one of allow_exec_prefixes")
}

// fits says what of the request the policy does not allow, "" for nothing.
func (x *runOS) fits(q *Request) string {
	if uint64(len(q.Argv[0])) > x.exe || uint64(len(q.Argv)) > x.argc {
		return "the path of the program is too long, or there are too many arguments"
	}
	for i, a := range q.Argv[1:] {
		if uint64(len(a)) > x.arg {
			return fmt.Sprintf("argument %d is too long", i+1)
		}
		if len(x.patterns) > 0 && !slices.ContainsFunc(x.patterns, func(p liteRegexp) bool { return p.match(a) }) {
			return fmt.Sprintf("argument %d matches no pattern", i+1)
		}
	}
	for _, v := range q.Env {
		if uint64(len(v.Key)) > x.key || uint64(len(v.Value)) > x.value || !slices.Contains(x.keys, string(v.Key)) {
			return "a variable is not one of allow_env_keys, or is too long"
		}
	}
	if len(q.Cwd) > 0 && (!x.cwd || !slices.ContainsFunc(x.roots, func(root string) bool { return x.inRoot(string(q.Cwd), path.Clean(root)) })) {
		return "the directory is below none of allow_cwd_roots"
	}
	return ""
}

// inRoot reports whether a directory is a root or lies below it, without .. in it and, where the policy denies them,
// without names that begin with a dot below the root.
func (x *runOS) inRoot(dir, root string) bool {
	if slices.Contains(strings.Split(dir, "/"), "..") || !below(path.Clean(dir), root) {
		return false
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(path.Clean(dir), root), "/")
	return !x.hidden || !slices.ContainsFunc(strings.Split(rest, "/"), func(part string) bool { return len(part) > 1 && part[0] == '.' })
}
