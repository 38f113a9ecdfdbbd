package proc

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// ruleFile is a policy of the first schema with one rule, changed.
func ruleFile(change ...string) string {
	s := `{"schema_version": "x07.os.process.policy@0.1.0", "process": {
 "default_action": "deny", "deny_shell": true,
 "limits": {"max_concurrent_children": 4, "timeout_ms_max": 5000, "max_stdout_bytes_max": 1000, "max_stderr_bytes_max": 1000, "max_total_bytes_max": 2000, "max_stdin_bytes_max": 100, "max_env_entries_max": 8, "max_arg_bytes_max": 300},
 "allow": [{"id": "tool", "exec": {"kind": "path", "path": "deps/tool"}, "args": {"mode": "prefix", "prefix": ["-a"]}, "cwd_roots": ["work"],
  "env": {"inherit_allowlist": [], "set_allowlist": ["A", "B"], "denylist": ["B"], "max_entries": 2},
  "caps_max": {"timeout_ms": 1000, "max_stdout_bytes": 100, "max_stderr_bytes": 100, "max_total_bytes": 200, "max_stdin_bytes": 10}}]}}`
	for i := 0; i+1 < len(change); i += 2 {
		s = strings.ReplaceAll(s, change[i], change[i+1])
	}
	return s
}

func runOSFile(change ...string) string {
	s := `{"schema_version": "x07.run-os-policy@0.1.0", "policy_id": "p",
 "limits": {}, "fs": {"deny_hidden": true}, "net": {}, "env": {}, "time": {},
 "process": {"enabled": true, "allow_spawn": true, "max_live": 2, "max_spawns": 3, "allow_exec": false, "allow_exit": true,
  "allow_execs": ["/bin/true"], "allow_exec_prefixes": ["deps/x07/"], "allow_args_regex_lite": ["-[a]*", "a.*b", "\\.x*"], "allow_env_keys": ["A"],
  "max_args": 4, "max_arg_bytes": 10, "max_env": 1, "max_runtime_ms": 1000, "max_stdout_bytes": 100, "max_stderr_bytes": 100, "max_total_bytes": 200, "max_stdin_bytes": 10,
  "allow_cwd": true, "allow_cwd_roots": ["work", "/srv"]}}`
	for i := 0; i+1 < len(change); i += 2 {
		s = strings.ReplaceAll(s, change[i], change[i+1])
	}
	return s
}

func request(argv ...string) *Request {
	q := &Request{}
	for _, a := range argv {
		q.Argv = append(q.Argv, []byte(a))
	}
	return q
}

// TestPolicies: what each schema allows, and what it denies, condition by condition.
func TestPolicies(t *testing.T) {
	few := Caps{10, 10, 500, 20}
	with := func(q *Request, change func(*Request)) *Request { change(q); return q }
	for _, x := range []struct {
		name, file string
		q          *Request
		c          Caps
		want       string // rule and time of what is allowed, "" for a denial
	}{
		{"plain", ruleFile(), request("deps/tool", "-a", "more"), few, "tool 500"},
		{"other spelling", ruleFile(), request("./deps/x/../tool", "-a"), few, "tool 500"},
		{"other program", ruleFile(), request("deps/tools", "-a"), few, ""},
		{"absolute", ruleFile(), request("/deps/tool", "-a"), few, ""},
		{"no prefix", ruleFile(), request("deps/tool", "b"), few, ""},
		{"less than the prefix", ruleFile(), request("deps/tool"), few, ""},
		{"exact", ruleFile(`"prefix", "prefix"`, `"exact", "exact"`), request("deps/tool", "-a"), few, "tool 500"},
		{"more than exact", ruleFile(`"prefix", "prefix"`, `"exact", "exact"`), request("deps/tool", "-a", "b"), few, ""},
		{"directory", ruleFile(), with(request("deps/tool", "-a"), func(q *Request) { q.Cwd = []byte("work/x/..") }), few, "tool 500"},
		{"directory that begins alike", ruleFile(), with(request("deps/tool", "-a"), func(q *Request) { q.Cwd = []byte("works") }), few, ""},
		{"directory above", ruleFile(), with(request("deps/tool", "-a"), func(q *Request) { q.Cwd = []byte("work/..") }), few, ""},
		{"variable", ruleFile(), with(request("deps/tool", "-a"), func(q *Request) { q.Env = []Var{{[]byte("A"), nil}} }), few, "tool 500"},
		{"denied variable", ruleFile(), with(request("deps/tool", "-a"), func(q *Request) { q.Env = []Var{{[]byte("B"), nil}} }), few, ""},
		{"other variable", ruleFile(), with(request("deps/tool", "-a"), func(q *Request) { q.Env = []Var{{[]byte("C"), nil}} }), few, ""},
		{"no time", ruleFile(), request("deps/tool", "-a"), Caps{10, 10, 0, 20}, "tool 1000"},
		{"all the time", ruleFile(), request("deps/tool", "-a"), Caps{10, 10, 1000, 20}, "tool 1000"},
		{"more time", ruleFile(), request("deps/tool", "-a"), Caps{10, 10, 1001, 20}, ""},
		{"more output", ruleFile(), request("deps/tool", "-a"), Caps{101, 10, 10, 20}, ""},
		{"sum of both", ruleFile(`"max_total_bytes": 200`, `"max_total_bytes": 150`), request("deps/tool", "-a"), Caps{100, 100, 10, 0}, ""},
		{"more input", ruleFile(), with(request("deps/tool", "-a"), func(q *Request) { q.Stdin = make([]byte, 11) }), few, ""},
		{"above all limits", ruleFile(`"timeout_ms_max": 5000`, `"timeout_ms_max": 400`), request("deps/tool", "-a"), few, ""},
		{"default", ruleFile(`"deny", "deny`, `"allow", "deny`), request("other"), Caps{1000, 1000, 5000, 2000}, " 5000"},
		{"default above limits", ruleFile(`"deny", "deny`, `"allow", "deny`), request("other"), Caps{1001, 1000, 5000, 2000}, ""},

		{"listed", runOSFile(), request("/bin/true"), few, "allow_execs 500"},
		{"listed, other spelling", runOSFile(), request("/bin/../bin//true"), few, "allow_execs 500"},
		{"below", runOSFile(), request("deps/x07/a"), few, "allow_exec_prefixes 500"},
		{"the prefix itself", runOSFile(), request("deps/x07"), few, ""},
		{"begins alike", runOSFile(), request("deps/x07a/a"), few, ""},
		{"out of it again", runOSFile(), request("deps/x07/../../bin/sh"), few, ""},
		{"pattern", runOSFile(), request("/bin/true", "a123b", ".xxx"), few, "allow_execs 500"},
		{"no pattern", runOSFile(), request("/bin/true", "a123"), few, ""},
		{"long argument", runOSFile(), request("/bin/true", "a123456789b"), few, ""},
		{"many arguments", runOSFile(), request("/bin/true", "ab", "ab", "ab", "ab"), few, ""},
		{"key", runOSFile(), with(request("/bin/true"), func(q *Request) { q.Env = []Var{{[]byte("A"), nil}} }), few, "allow_execs 500"},
		{"other key", runOSFile(), with(request("/bin/true"), func(q *Request) { q.Env = []Var{{[]byte("B"), nil}} }), few, ""},
		{"root", runOSFile(), with(request("/bin/true"), func(q *Request) { q.Cwd = []byte("/srv/a") }), few, "allow_execs 500"},
		{"hidden", runOSFile(), with(request("/bin/true"), func(q *Request) { q.Cwd = []byte("/srv/.git") }), few, ""},
		{"not hidden", runOSFile(`"deny_hidden": true`, `"deny_hidden": false`), with(request("/bin/true"), func(q *Request) { q.Cwd = []byte("/srv/.git") }), few, "allow_execs 500"},
		{"two dots", runOSFile(), with(request("/bin/true"), func(q *Request) { q.Cwd = []byte("/srv/a/..") }), few, ""},
		{"no time", runOSFile(), request("/bin/true"), Caps{10, 10, 0, 20}, "allow_execs 1000"},
		{"not enabled", runOSFile(`"enabled": true`, `"enabled": false`), request("/bin/true"), few, ""},
	} {
		p, err := ParsePolicy("p.json", []byte(x.file))
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		v, have := p.Decide(x.q, &x.c), ""
		if v.Allow {
			have = fmt.Sprint(v.RuleID, " ", v.TimeoutMS)
		}
		if have != x.want || v.Allow == (v.Why != "") {
			t.Errorf("%s: %q (%s), expected %q", x.name, have, v.Why, x.want)
		}
	}
}

// TestByDigest: rules that select by digest come last, and each keeps what else could allow the request.
func TestByDigest(t *testing.T) {
	rule := `{"kind": "path", "path": "deps/tool"}`
	file := ruleFile(rule, `{"kind": "sha256", "sha256_hex": "`+strings.Repeat("a", 64)+`"}`)
	p, err := ParsePolicy("p.json", []byte(file))
	testkit.Must(t, err)
	v := p.Decide(request("any/thing", "-a"), &Caps{1, 1, 1, 1})
	if !v.Allow || v.SHA256 != strings.Repeat("a", 64) || len(v.Next) > 0 {
		t.Errorf("%+v", v)
	}
	p, err = ParsePolicy("p.json", []byte(strings.Replace(file, `"deny", "deny`, `"allow", "deny`, 1)))
	testkit.Must(t, err)
	if v := p.Decide(request("any/thing", "-a"), &Caps{1, 1, 1, 1}); len(v.Next) != 1 || v.Next[0].SHA256 != "" || !v.Next[0].Allow {
		t.Errorf("%+v", v)
	}
}

// TestBadPolicies: each fault is found, at its line.
func TestBadPolicies(t *testing.T) {
	for _, x := range []struct{ file, want string }{
		{`{}`, "schema_version"}, {`[]`, "schema_version"}, {`{"schema_version": "x"}`, "schema_version is"},
		{ruleFile(`"deny_shell": true`, `"deny_shell": false`), "p.json:2:42: deny_shell is not true"},
		{ruleFile(`, "deny_shell": true`, ``), "no deny_shell"}, {ruleFile(`"timeout_ms_max": 5000`, `"timeout_ms_max": 600001`), "p.json:3:"},
		{ruleFile(`"kind": "path", `, `"kind": "sha256", `), "no sha256_hex"}, {ruleFile(`"mode": "prefix", `, `"mode": "exact", `), "no exact"},
		{ruleFile(`"id": "tool"`, `"id": "Tool"`), "p.json:4:"}, {ruleFile(`["B"]`, `["b"]`), "denylist"}, {ruleFile(`["work"]`, `[""]`), "cwd_roots"},
		{ruleFile(`"max_entries": 2`, `"max_entries": 2, "more": 1`), "unknown key"}, {ruleFile(`"deny", "deny`, `"ask", "deny`), "default_action is"},
		{runOSFile(`"allow_execs": ["/bin/true"], "allow_exec_prefixes": ["deps/x07/"], `, ``), "allow_spawn without"},
		{runOSFile(`"max_live": 2`, `"max_live": 0`), "max_live 0"}, {runOSFile(`"max_spawns": 3`, `"max_spawns": 0`), "max_spawns 0"},
		{runOSFile(`"max_runtime_ms": 1000, `, ``), "max_runtime_ms 0"}, {runOSFile(`, "allow_cwd_roots": ["work", "/srv"]`, ``), "allow_cwd without"},
		{runOSFile(`"/bin/true"`, `"/bin/true;/bin/sh"`), "it has a ;"}, {runOSFile(`"a.*b"`, `"*b"`), "a * without"}, {runOSFile(`"a.*b"`, `"b\\"`), "a backslash at its end"},
		{runOSFile(`"net": {}, `, ``), "no net"}, {runOSFile(`"max_args": 4`, `"max_args": -1`), "max_args is"}, {runOSFile(`"enabled": true`, `"enabled": "yes"`), "enabled is"},
	} {
		if p, err := ParsePolicy("p.json", []byte(x.file)); err == nil || !strings.Contains(err.Error(), x.want) || p != nil {
			t.Errorf("%s\ngives %v, expected %s", x.file, err, x.want)
		}
	}
}

// TestCorporaPolicies: all policies of the corpora are read, and none lets a process start.
func TestCorporaPolicies(t *testing.T) {
	n := 0
	testkit.Must(t, filepath.WalkDir(testkit.Corpora(t, "x07"), func(name string, d fs.DirEntry, err error) error {
		b, _ := os.ReadFile(name)
		if err != nil || !strings.Contains(string(b), `"`+SchemaRunOS+`"`) || strings.Contains(string(b), `"$schema"`) {
			return err
		}
		n++
		p, err := ParsePolicy(name, b)
		if err != nil {
			t.Error(err)
		} else if v := p.Decide(request("/bin/true"), &Caps{}); v.Allow {
			t.Errorf("%s: %+v", name, v)
		}
		return nil
	}))
	if n < 21 {
		t.Errorf("%d policies, expected 21 or more", n)
	}
}

// TestLiteRegexp compares with regexp, which knows the same patterns by other names.
func TestLiteRegexp(t *testing.T) {
	patterns := []string{"", "a", "a*", ".*", "a.c", "a*b*", `\*`, `\\`, "a*a", ".*b.", `\.*x`, "-[a]*"}
	texts := []string{"", "a", "aa", "ab", "abc", "aabb", "*", `\`, "...x", "-[a]", "-[a", "-[aaa", "xby", "\xff"}
	for _, p := range patterns {
		re, err := parseLite(p)
		testkit.Must(t, err)
		var same strings.Builder
		for _, k := range re {
			one := regexp.QuoteMeta(string([]byte{k.c}))
			if k.any {
				one = `(?s:.)`
			}
			if same.WriteString(one); k.star {
				same.WriteString("*")
			}
		}
		want := regexp.MustCompile(`^(?:` + same.String() + `)$`)
		for _, s := range texts {
			if s == "\xff" {
				continue // regexp reads characters
			}
			if re.match([]byte(s)) != want.MatchString(s) {
				t.Errorf("%q of %q: %v", p, s, re.match([]byte(s)))
			}
		}
	}
	if any, _ := parseLite(".*"); !any.match([]byte("\xff\x00\n")) {
		t.Error("a byte that is no character")
	}
}

// FuzzPolicy: no file makes the reader fail, and what it takes decides every request.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte(ruleFile()))
	f.Add([]byte(runOSFile()))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := ParsePolicy("p", b); err == nil {
			p.Decide(request("deps/tool", "-a"), &Caps{1, 1, 1, 1})
		}
	})
}
