package fold

import (
	"slices"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// rule is a declared fold: what it matches in a value has another name in each run.
type rule struct {
	name    string
	parts   []string // one of them is in every value that the pattern matches: most values need no more than this look
	pattern *pattern.Pattern
	to      string
	says    string
	kinds   []string // of items; nil: all
}

const (
	atEnd     = `(/|$)`
	inTemp    = `^((?:/var)?/tmp/(?:.*/)?)`
	ephemeral = `(?:3276[89]|327[7-9][0-9]|32[89][0-9]{2}|3[3-9][0-9]{3}|[45][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])`
)

// rules are the built-in folds, in the order in which they are applied.
var rules = []rule{
	{"proc-pid", []string{"/proc/"}, pattern.New(`^/proc/[0-9]+` + atEnd), "/proc/<pid>$1", "process ids in /proc", nil},
	{"proc-task", []string{"/task/"}, pattern.New(`^(/proc/[^/]+)/task/[0-9]+` + atEnd), "$1/task/<pid>$2", "thread ids in /proc", nil},
	{"pts", []string{"/dev/pts/"}, pattern.New(`^/dev/pts/[0-9]+$`), "/dev/pts/<number>", "numbers of terminals", nil},
	{"runner-run", []string{"/runner-run_"}, pattern.New(`/runner-run_[0-9a-f]{32}` + atEnd), "/runner-<run>$1", "the folder for the logs of a run of runner-exec", nil},
	{"runner-log", []string{"/runner-<run>/"}, pattern.New(`(/runner-<run>/[a-z]+)-[A-Z2-7]{26}\.ndjson$`), "$1-<temp>.ndjson", "the logs in that folder", nil},
	{"mktemp", []string{"/tmp."}, pattern.New(`/tmp\.[A-Za-z0-9]{6,12}(\.[a-z0-9.]+)?` + atEnd), "/tmp.<temp>$1$2", "names that mktemp makes", nil},
	{"python-temp", []string{"/tmp"}, pattern.New(inTemp + `tmp[a-z0-9_]{8}([._-][A-Za-z0-9._-]*)?` + atEnd), "${1}tmp<temp>$2$3", "names that Python's tempfile makes in /tmp and /var/tmp", nil},
	{"python-probe", []string{"/tmp/"}, pattern.New(`^((?:/var)?/tmp/)[a-z0-9_]{8}$`), "$1<temp>", "files that Python's tempfile makes and removes to see whether it can write; only of created and removed names", []string{schemas.ItemCreate, schemas.ItemDelete}},
	{"compiler-temp", []string{"/cc"}, pattern.New(inTemp + `cc[A-Za-z0-9]{6}(\.[a-z.]+)?$`), "${1}cc<temp>$2", "files that gcc makes in /tmp and /var/tmp", nil},
	{"sort-temp", []string{"/sort"}, pattern.New(inTemp + `sort[A-Za-z0-9]{6}$`), "${1}sort<temp>", "files that sort makes in /tmp and /var/tmp", nil},
	{"sed-temp", []string{"/sed"}, pattern.New(`/sed[A-Za-z0-9]{6}$`), "/sed<temp>", "files that sed -i makes", nil},
	{"go-temp", []string{"/go-", "/cgo-gcc-input"}, pattern.New(`/(go-build|go-link|go-run|go-tool|cgo-gcc-input)-?[0-9]+(\.[a-z]+)?` + atEnd), "/$1<temp>$2$3", "folders and files that go build, go run, cgo and the linker make", nil},
	{"go-cgo", []string{"/_cgo_"}, pattern.New(`/_cgo_[0-9]+\.o$`), "/_cgo_<number>.o", "objects that cgo makes in parallel", nil},
	{"go-cache", []string{"-a", "-d"}, pattern.New(`/[0-9a-f]{2}/[0-9a-f]{64}-[ad]` + atEnd), "/<entry>$1", "entries of Go's build cache", nil},
	{"go-cache-folders", []string{"/go-build/"}, pattern.New(`/go-build/[0-9a-f]{2}$`), "/go-build/<entry>", "folders of Go's build cache", nil},
	{"python-pool", []string{"/pymp-"}, pattern.New(inTemp + `pymp-[a-z0-9_]{8}` + atEnd), "${1}pymp-<temp>$2", "folders that Python's multiprocessing makes", nil},
	{"semaphores", []string{"/dev/shm/sem."}, pattern.New(`^/dev/shm/sem\.(?:[A-Za-z0-9]{6}|mp-[a-z0-9_]{8})$`), "/dev/shm/sem.<temp>", "semaphores of the C library and of Python's multiprocessing", nil},
	{"pip-temp", []string{"/pip-"}, pattern.New(`/pip-([a-z-]+)-[a-z0-9_]{8}` + atEnd), "/pip-$1-<temp>$2", "folders that pip makes", nil},
	{"pip-cache", []string{"/pip/"}, pattern.New(`/pip/(http|http-v2|wheels|selfcheck)/.+$`), "/pip/$1/<entry>", "entries of pip's cache", nil},
	{"pycache", []string{"/__pycache__/"}, pattern.New(`(/__pycache__/[^/]+\.pyc)\.[0-9]+$`), "$1.<number>", "files that Python renames to .pyc files", nil},
	{"npm-temp", []string{"/node_modules/"}, pattern.New(`(/node_modules/(?:@[^/]+/)?\.[^/]+)-[A-Za-z0-9]{8}` + atEnd), "$1-<temp>$2", "folders that npm renames", nil},
	{"npm-cache", []string{"/_cacache/"}, pattern.New(`/_cacache/(content-v2|index-v5|tmp)/.+$`), "/_cacache/$1/<entry>", "entries of npm's cache", nil},
	{"npm-log", []string{"/_logs/"}, pattern.New(`/_logs/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}_[0-9]{2}_[0-9]{2}_[0-9]{3}Z-`), "/_logs/<time>-", "logs of npm, which have the time in their names", nil},
	{"git-temp", []string{"/objects/"}, pattern.New(`/objects/((?:pack/)?tmp_(?:objdir-)?[a-z]+[_-])[A-Za-z0-9]{6}` + atEnd), "/objects/$1<temp>$2", "files and folders that git makes in objects", nil},
	{"git-object-temp", []string{"/objects/"}, pattern.New(`/objects/[0-9a-f]{2}/tmp_obj_[A-Za-z0-9]{6}$`), "/objects/<object>/tmp_obj_<temp>", "files that git makes in folders of objects", nil},
	{"git-packs", []string{"/objects/pack/"}, pattern.New(`/objects/pack/(\.tmp-)?(?:[0-9]+-)?pack-(?:[0-9a-f]{64}|[0-9a-f]{40})\.`), "/objects/pack/${1}pack-<object>.", "packs of git, which are named by what is in them", nil},
	{"git-info-temp", []string{"/info/"}, pattern.New(`/info/(refs|packs)_[A-Za-z0-9]{6}$`), "/info/${1}_<temp>", "lists that git gc makes", nil},
	{"git-probe", []string{".git/t"}, pattern.New(`(\.git/)t[A-Za-z0-9]{6}$`), "${1}t<temp>", "files that git makes in a new repository to see what the file system can do", nil},
	{"git-objects", []string{"/objects/"}, pattern.New(`/objects/[0-9a-f]{2}(?:/(?:[0-9a-f]{38}|[0-9a-f]{62}))?$`), "/objects/<object>", "objects of git", nil},
	{"loopback-port", []string{"127.0.0.1:", "[::1]:", "0.0.0.0:", "[::]:"}, pattern.New(`^(127\.0\.0\.1|\[::1\]|0\.0\.0\.0|\[::\]):` + ephemeral + `$`), "$1:<port>", "ports of this machine from 32768 on, which the kernel chooses", nil},
	{"unix-autobind", []string{"unix:@"}, pattern.New(`^unix:@[0-9a-f]{5}$`), "unix:@<number>", "names that the kernel gives to unix sockets without one", nil},
}

// takes reports whether a rule is for this kind of items.
func (r *rule) takes(kind string) bool { return r.kinds == nil || slices.Contains(r.kinds, kind) }

func ruleOf(name string) *rule {
	for i := range rules {
		if rules[i].name == name {
			return &rules[i]
		}
	}
	return nil
}
