// Package fold makes patterns of names that differ in each run, by declared rules.
package fold

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/nearest"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// Workspace is the fold whose folder is where a run may write.
const Workspace = "workspace"

// none is the word for no rule.
const none = "none"

// folder is a fold of the command line: what is below a folder is below <name>.
type folder struct {
	name, dir string
	pattern   *regexp.Regexp // of a folder with *, or nil
}

// Set is the folds that apply. The zero value changes no name but the < in it.
type Set struct {
	rules   []*rule
	parts   *finder  // of the parts of these rules; nil if there are none
	folders []folder // the longest first
}

var foldName = pattern.New(`^[a-z][a-z0-9-]{0,31}$`)

// New reads the values of --fold. Without a rule by name, all built-in ones apply.
func New(values []string) (*Set, error) {
	f := &Set{}
	named, empty := map[string]bool{}, false
	for _, v := range values {
		name, dir, is := strings.Cut(v, "=")
		switch {
		case is:
			if err := f.addFolder(name, dir); err != nil {
				return nil, err
			}
		case v == none:
			empty = true
		case ruleOf(v) == nil:
			return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("--fold %q: expected %s, a rule of --folds, or NAME=FOLDER", v, none), foldHint(v))
		default:
			named[v] = true
		}
	}
	if empty && len(named) > 0 {
		return nil, tool.Usagef("--fold %s and a rule: expected one of them", none)
	}
	for i := range rules {
		if !empty && len(named) == 0 || named[rules[i].name] {
			f.rules = append(f.rules, &rules[i])
		}
	}
	f.parts = finderOf(f.rules)
	return f, nil
}

func foldHint(word string) string {
	var names []string
	for i := range rules {
		names = append(names, rules[i].name)
	}
	if near := nearest.Word(word, names); near != "" {
		return "did you mean --fold " + near + "?"
	}
	return "runner-diff --folds lists the rules; a folder: --fold home=$HOME --fold workspace=$PWD"
}

func (f *Set) addFolder(name, dir string) error {
	if !foldName.MatchString(name) || ruleOf(name) != nil || name == none {
		return tool.BadValue("fold", name+"="+dir, "a name of a-z, 0-9 and -, that is no rule of --folds")
	}
	dir = strings.TrimRight(dir, "/")
	if !strings.HasPrefix(dir, "/") {
		return tool.BadValue("fold", name+"="+dir, "a folder below / after the =")
	}
	if slices.ContainsFunc(f.folders, func(o folder) bool { return o.name == name || o.dir == dir }) {
		return tool.Usagef("--fold %s=%s: the name or the folder is given twice", name, dir)
	}
	dir = strings.ReplaceAll(dir, "<", opening)
	f.folders = append(f.folders, folder{name, dir, patternOf(dir)})
	slices.SortFunc(f.folders, func(a, b folder) int {
		return cmp.Or(cmp.Compare(len(b.dir), len(a.dir)), strings.Compare(a.dir, b.dir))
	})
	return nil
}

// Names are the names of the folds, in a fixed order.
func (f *Set) Names() []string {
	list := []string{}
	for _, r := range f.rules {
		list = append(list, r.name)
	}
	var own []string
	for _, d := range f.folders {
		own = append(own, d.name)
	}
	slices.Sort(own)
	return append(list, own...)
}

// opening is how a < of a name is written: so no name is one that a fold made. No text form of a name has it.
const opening = `\x3c`

// Value folds a value of a kind of items.
func (f *Set) Value(kind, s string) string {
	if strings.Contains(s, "<") {
		s = strings.ReplaceAll(s, "<", opening)
	}
	before, path := "", s
	if rest, ok := strings.CutPrefix(s, "unix:/"); ok {
		before, path = "unix:", "/"+rest
	}
	for i := range f.folders {
		if rest, ok := f.folders[i].cut(path); ok {
			path = "<" + f.folders[i].name + ">" + rest
			break
		}
	}
	possible := f.parts.find(path)
	for i := 0; possible>>i != 0; i++ {
		if r := f.rules[i]; possible>>i&1 == 1 && r.takes(kind) && r.pattern.MatchString(path) {
			path = r.pattern.ReplaceAllString(path, r.to)
			possible = f.parts.find(path) // a rule can make what a later one folds
		}
	}
	return before + path
}

// patternOf is the pattern of a folder in which a * stands for any text of a name.
func patternOf(dir string) *regexp.Regexp {
	if !strings.Contains(dir, "*") {
		return nil
	}
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(dir), `\*`, `[^/]*`) + atEnd)
}

// cut is what comes after the folder in a path; false if it is not below it.
func (d *folder) cut(path string) (rest string, ok bool) {
	if d.pattern != nil {
		at := d.pattern.FindStringSubmatchIndex(path)
		if at == nil {
			return "", false
		}
		return path[at[2]:], true
	}
	rest, ok = strings.CutPrefix(path, d.dir)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// Builtin are all built-in rules.
func Builtin() *Set {
	f, _ := New(nil) // no value, nothing that is wrong
	return f
}

// WithRules is a set with the folders of this one and the built-in rules of these names.
func (f *Set) WithRules(names []string) *Set {
	s := &Set{folders: f.folders}
	for i := range rules {
		if slices.Contains(names, rules[i].name) {
			s.rules = append(s.rules, &rules[i])
		}
	}
	s.parts = finderOf(s.rules)
	return s
}

// List prints the built-in rules.
func List(w io.Writer) error {
	for i := range rules {
		r := &rules[i]
		if _, err := fmt.Fprintf(w, "%-16s %s\n%16s %s  →  %s\n", r.name, r.says, "", r.pattern, r.to); err != nil {
			return tool.CannotWrite("standard output", err)
		}
	}
	return nil
}
