package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/nearest"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// foldWorkspace is the fold whose folder is where a run may write.
const foldWorkspace = "workspace"

// foldNone is no fold.
const foldNone = "none"

// rule is a declared fold: what it matches in a value has another name in each run.
type rule struct {
	name    string
	pattern *regexp.Regexp
	to      string
	says    string
}

const (
	atEnd     = `(/|$)`
	inTemp    = `^((?:/var)?/tmp/(?:.*/)?)`
	ephemeral = `(?:3276[89]|327[7-9][0-9]|32[89][0-9]{2}|3[3-9][0-9]{3}|[45][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])`
)

// rules are the built-in folds, in the order in which they are applied.
var rules = []rule{
	{"proc-pid", regexp.MustCompile(`^/proc/[0-9]+` + atEnd), "/proc/<pid>$1", "process ids in /proc"},
	{"proc-task", regexp.MustCompile(`^(/proc/[^/]+)/task/[0-9]+` + atEnd), "$1/task/<pid>$2", "thread ids in /proc"},
	{"pts", regexp.MustCompile(`^/dev/pts/[0-9]+$`), "/dev/pts/<number>", "numbers of terminals"},
	{"mktemp", regexp.MustCompile(`/tmp\.[A-Za-z0-9]{6,12}` + atEnd), "/tmp.<temp>$1", "names that mktemp makes"},
	{"python-temp", regexp.MustCompile(inTemp + `tmp[a-z0-9_]{8}(\.[a-z0-9]+)?` + atEnd), "${1}tmp<temp>$2$3", "names that Python's tempfile makes in /tmp and /var/tmp"},
	{"compiler-temp", regexp.MustCompile(inTemp + `cc[A-Za-z0-9]{6}(\.[a-z.]+)?$`), "${1}cc<temp>$2", "files that gcc makes in /tmp and /var/tmp"},
	{"go-temp", regexp.MustCompile(`/go-(build|link|run|tool)-?[0-9]+` + atEnd), "/go-$1<temp>$2", "folders that go build, go run and the linker make"},
	{"go-cache", regexp.MustCompile(`/go-build/[0-9a-f]{2}(?:/[0-9a-f]{64}-[ad])?$`), "/go-build/<entry>", "entries of Go's build cache"},
	{"pip-temp", regexp.MustCompile(`/pip-([a-z-]+)-[a-z0-9_]{8}` + atEnd), "/pip-$1-<temp>$2", "folders that pip makes"},
	{"pip-cache", regexp.MustCompile(`/pip/(http|http-v2|wheels|selfcheck)/.+$`), "/pip/$1/<entry>", "entries of pip's cache"},
	{"pycache", regexp.MustCompile(`(/__pycache__/[^/]+\.pyc)\.[0-9]+$`), "$1.<number>", "files that Python renames to .pyc files"},
	{"npm-temp", regexp.MustCompile(`(/node_modules/(?:@[^/]+/)?\.[^/]+)-[A-Za-z0-9]{8}` + atEnd), "$1-<temp>$2", "folders that npm renames"},
	{"npm-cache", regexp.MustCompile(`/_cacache/(content-v2|index-v5|tmp)/.+$`), "/_cacache/$1/<entry>", "entries of npm's cache"},
	{"git-temp", regexp.MustCompile(`(/objects/(?:[0-9a-f]{2}/|pack/)?tmp_[a-z]+_)[A-Za-z0-9]{6}$`), "$1<temp>", "files that git makes below objects"},
	{"git-objects", regexp.MustCompile(`/objects/[0-9a-f]{2}(?:/(?:[0-9a-f]{38}|[0-9a-f]{62}))?$`), "/objects/<object>", "objects of git"},
	{"loopback-port", regexp.MustCompile(`^(127\.0\.0\.1|\[::1\]):` + ephemeral + `$`), "$1:<port>", "ports of this machine from 32768 on, which the kernel chooses"},
}

// folder is a fold of the command line: what is below a folder is below <name>.
type folder struct{ name, dir string }

// folds are those that apply.
type folds struct {
	rules   []*rule
	folders []folder // the longest first
}

var foldName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// newFolds reads the values of --fold. Without a rule by name, all built-in ones apply.
func newFolds(values []string) (*folds, error) {
	f := &folds{}
	named, none := map[string]bool{}, false
	for _, v := range values {
		name, dir, is := strings.Cut(v, "=")
		switch {
		case is:
			if err := f.addFolder(name, dir); err != nil {
				return nil, err
			}
		case v == foldNone:
			none = true
		case ruleOf(v) == nil:
			return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("--fold %q: expected %s, a rule of --folds, or NAME=FOLDER", v, foldNone), foldHint(v))
		default:
			named[v] = true
		}
	}
	if none && len(named) > 0 {
		return nil, tool.Usagef("--fold %s and a rule: expected one of them", foldNone)
	}
	for i := range rules {
		if !none && len(named) == 0 || named[rules[i].name] {
			f.rules = append(f.rules, &rules[i])
		}
	}
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

func (f *folds) addFolder(name, dir string) error {
	if !foldName.MatchString(name) || ruleOf(name) != nil || name == foldNone {
		return tool.BadValue("fold", name+"="+dir, "a name of a-z, 0-9 and -, that is no rule of --folds")
	}
	dir = strings.TrimRight(dir, "/")
	if !strings.HasPrefix(dir, "/") {
		return tool.BadValue("fold", name+"="+dir, "a folder below / after the =")
	}
	if slices.ContainsFunc(f.folders, func(o folder) bool { return o.name == name || o.dir == dir }) {
		return tool.Usagef("--fold %s=%s: the name or the folder is given twice", name, dir)
	}
	f.folders = append(f.folders, folder{name, strings.ReplaceAll(dir, "<", opening)})
	slices.SortFunc(f.folders, func(a, b folder) int {
		return cmp.Or(cmp.Compare(len(b.dir), len(a.dir)), strings.Compare(a.dir, b.dir))
	})
	return nil
}

func ruleOf(name string) *rule {
	for i := range rules {
		if rules[i].name == name {
			return &rules[i]
		}
	}
	return nil
}

// names are the names of the folds, in a fixed order.
func (f *folds) names() []string {
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

// value folds a value.
func (f *folds) value(s string) string {
	if strings.Contains(s, "<") {
		s = strings.ReplaceAll(s, "<", opening)
	}
	before, path := "", s
	if rest, ok := strings.CutPrefix(s, "unix:/"); ok {
		before, path = "unix:", "/"+rest
	}
	for _, d := range f.folders {
		if rest, ok := strings.CutPrefix(path, d.dir); ok && (rest == "" || rest[0] == '/') {
			path = "<" + d.name + ">" + rest
			break
		}
	}
	for _, r := range f.rules {
		if r.pattern.MatchString(path) {
			path = r.pattern.ReplaceAllString(path, r.to)
		}
	}
	return before + path
}

// listFolds prints the built-in rules.
func listFolds(w io.Writer) error {
	for i := range rules {
		r := &rules[i]
		if _, err := fmt.Fprintf(w, "%-14s %s\n%14s %s  →  %s\n", r.name, r.says, "", r.pattern, r.to); err != nil {
			return tool.CannotWrite("standard output", err)
		}
	}
	return nil
}
