package policy

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/strict"
	"github.com/runner-evidence/runner/schemas"
)

// fileRules reads the sections files and exec, and compiles them: one entry for each path.
// The numbers of their rules run over both.
func (r *reader) fileRules(sections map[string]strict.Field, ids map[string]int) *schemas.FileRules {
	files, hasFiles := sections["files"]
	exec, hasExec := sections["exec"]
	if !hasFiles && !hasExec {
		return nil
	}
	out := &schemas.FileRules{Schema: schemas.SchemaFileRules, Rules: []schemas.FileRule{},
		FilesDefault: schemas.DecisionAllow, ExecDefault: schemas.DecisionAllow}
	number := uint32(0)
	add := func(on []string, keys ...string) func(*yaml.Node) {
		return func(item *yaml.Node) {
			number++
			out.Rules = append(out.Rules, r.fileRule(item, number, ids, on, keys)...)
			r.bound(item, len(out.Rules), schemas.MaxFilePaths, "paths in all file and exec rules together")
		}
	}
	if hasFiles {
		out.FilesDefault = r.section(files.Value, "files", out.FilesDefault, add(schemas.FileOps[:], "id", "allow", "deny", "on"))
	}
	if hasExec {
		out.ExecDefault = r.section(exec.Value, "exec", out.ExecDefault, add([]string{schemas.HookExec}, "id", "allow", "deny"))
	}
	return out
}

// fileRule reads one rule. It is about all operations of its section if it names none.
func (r *reader) fileRule(n *yaml.Node, number uint32, ids map[string]int, on, keys []string) []schemas.FileRule {
	o := r.Object(n, "the rule", keys...)
	if o == nil {
		return nil
	}
	base := schemas.FileRule{Number: number, ID: r.id(n, o, ids), Action: schemas.DecisionDeny, On: slices.Clone(on)}
	paths, allow, ok := r.side(n, o, "paths")
	if allow {
		base.Action = schemas.DecisionAllow
	}
	if f, ok := o["on"]; ok {
		base.On = r.words(f.Value, "on", on...)
	}
	if !ok {
		return nil
	}
	var out []schemas.FileRule
	for _, item := range r.Items(paths.Value, paths.Key.Value) {
		s, ok := r.Text(item, "a path")
		if !ok {
			continue
		}
		if s, ok = r.rulePath(item, s, on[0] == schemas.HookExec); !ok {
			continue
		}
		entry := base
		entry.Path = schemas.Text(s)
		if err := entry.CheckPath(); err != nil {
			r.Bad(item, err.Error(), "a path that a file can have", "")
		}
		out = append(out, entry)
	}
	return out
}

// rulePath reads the path of a file or exec rule. Wildcards would make the rule void without
// a word: the kernel compares names.
func (r *reader) rulePath(n *yaml.Node, s string, program bool) (string, bool) {
	switch {
	case strings.ContainsAny(s, "*?"):
		r.Bad(n, "path "+strict.Quote(s)+" has a wildcard", "a path without * and ?: a directory means all below", "")
		return "", false
	case program && !strings.Contains(s, "/") && printedBy("command -v", s) != "":
		r.Bad(n, "path "+strict.Quote(s)+" is the name of a program", "a path from the root", printedBy("command -v", s))
		return "", false
	}
	return r.absolute(n, s)
}

// ResolveFiles returns rules for this machine as it is now. Enforcement compares the paths
// that the kernel resolves, which hold no symbolic links. So a rule whose path leads through
// links becomes two: one for the place where they lead now, and one for the path as the
// file names it. The second protects the links themselves, and what may be there later in
// their place. Names that do not exist stay as they are: they may be made later.
func ResolveFiles(rules *schemas.FileRules) (*schemas.FileRules, error) {
	out := *rules
	out.Rules = []schemas.FileRule{}
	for _, r := range rules.Rules {
		p, err := schemas.Untext(r.Path)
		if err != nil {
			return nil, err
		}
		place, err := resolve(string(p))
		if err != nil {
			return nil, fmt.Errorf("rule %s: path %s: %w", r.ID, plainQuote(string(p)), err)
		}
		if place != string(p) {
			there := r
			there.Path = schemas.Text(place)
			out.Rules = append(out.Rules, there)
		}
		out.Rules = append(out.Rules, r)
	}
	return &out, out.Check()
}
