package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// tree makes
//
//	work/file, work/dir/, work/in -> dir, work/out -> ../other, work/up -> .., work/loop -> loop,
//	work/gone -> none, work/self -> /proc/self/cwd, other/secret, link -> work
func tree(t testing.TB) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"work/dir", "other", "workshop"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"work/file", "other/secret"} {
		if err := os.WriteFile(filepath.Join(top, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"work/in": "dir", "work/out": "../other", "work/up": "..", "work/loop": "loop",
		"work/gone": "none", "work/self": "/proc/self/cwd", "link": "work"} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

func TestUnder(t *testing.T) {
	top := tree(t)
	for _, x := range []struct{ arg, allow, deny string }{
		{"/work", "yes", "yes"}, {"/work/", "yes", "yes"}, {"/work/file", "yes", "yes"}, {"/work/new/x", "yes", "yes"},
		{"/workshop", "no", "no"}, {"/wor", "no", "no"}, {"/other/secret", "no", "no"}, {"", "no", "no"}, {"/", "no", "no"},
		{"//work///./file", "yes", "yes"}, {"/work/../other", "no", "yes-or-no"}, {"/work/dir/../file", "yes", "yes"},
		{"/work/in/x", "yes", "yes"}, {"/work/out", "no", "yes"}, {"/work/out/secret", "no", "yes"}, {"/work/out/new", "no", "yes"},
		{"/link/file", "no", "yes"}, {"/other/../link/in", "no", "yes"},
		// The kernel goes up from where the link leads.
		{"/work/out/../file", "no", "yes"}, {"/work/up/other/secret", "no", "yes"}, {"/work/in/../file", "yes", "yes"},
		{"/work/out/../work/file", "yes", "yes"},
		{"/work/gone", "yes", "yes"}, {"/work/gone/x", "yes", "yes"}, {"/work/loop", "error", "error"}, {"/work/self/x", "error", "error"},
		{"/work/file/../../other", "no", "no"}, {"/work/none/../../other", "no", "no"},
		{`/work/..\\..\\other`, "no", "yes"}, {`/other\\..\\..\\work`, "no", "no"}, {`/work/a\\b`, "yes", "yes"},
		{"/work/%2e%2e/other", "no", "yes"}, {"/work%2f..%2fother", "no", "no"}, {"/work/100%", "yes", "yes"}, {"/%77ork/x", "no", "yes"},
		{`/work/x\\y/%2e%2e/%2e%2e/z`, "no", "yes"},
	} {
		for verb, want := range map[string]string{"allow": x.allow, "deny": x.deny} {
			if want == "yes-or-no" {
				continue
			}
			other := map[string]string{"allow": "deny", "deny": "allow"}[verb]
			p := rules(t, "default: "+other+"\nrules: [{id: r, "+verb+": x, args: [{at: $.a, under: "+top+"/work}]}]")
			d := decide(t, p, "x", `{"a":"`+top+x.arg+`"}`, "/")
			have := map[string]string{schemas.ReasonAllowRule: "yes", schemas.ReasonDenyRule: "yes", schemas.ReasonEvalError: "error",
				schemas.ReasonAllowDefault: "no", schemas.ReasonDenyDefault: "no"}[d.Reason]
			if have != want {
				t.Errorf("%s of %s: %s (%s), want %s", verb, x.arg, have, d.Say, want)
			}
		}
	}
}

func TestUnderRelative(t *testing.T) {
	top := tree(t)
	p := rules(t, "rules: [{id: r, allow: x, args: [{at: $.a, under: ["+top+"/work, "+top+"/link/dir]}]}]")
	for _, x := range []struct{ dir, arg, want string }{
		{"/work", "file", schemas.ReasonAllowRule}, {"/work", ".", schemas.ReasonAllowRule}, {"/work", "./x/../y", schemas.ReasonAllowRule},
		{"/work", "../other/secret", schemas.ReasonDenyDefault}, {"/work", "out/secret", schemas.ReasonDenyDefault}, {"/work", "..", schemas.ReasonDenyDefault},
		{"", "work/x", schemas.ReasonAllowRule}, {"/work/out", "../work", schemas.ReasonAllowRule}, {"/work", "...", schemas.ReasonAllowRule},
		{"/work", "-x", schemas.ReasonAllowRule}, {"/work", "./~x", schemas.ReasonAllowRule}, {"/work", "a:b", schemas.ReasonAllowRule},
		{"/work", "x y", schemas.ReasonAllowRule}, {"/work", "x\\\"y", schemas.ReasonAllowRule},
		{"/work", "", schemas.ReasonEvalError}, {"/work", "~", schemas.ReasonEvalError}, {"/work", "~/x", schemas.ReasonEvalError}, {"/work", "~root/x", schemas.ReasonEvalError},
		{"/work", "$HOME/x", schemas.ReasonEvalError}, {"/work", " /etc/passwd", schemas.ReasonEvalError}, {"/work", "/etc/passwd\\n", schemas.ReasonEvalError},
		{"/work", "\\\"/etc/passwd\\\"", schemas.ReasonEvalError}, {"/work", "'/etc/passwd'", schemas.ReasonEvalError}, {"/work", "\\ufeff/etc/passwd", schemas.ReasonEvalError},
		{"/work", "\\u001f/etc", schemas.ReasonEvalError}, {"/work", "x\\u0000y", schemas.ReasonEvalError}, {"/work", "file:///etc/passwd", schemas.ReasonEvalError},
		{"/work", "%2525252525252525252525252525252525252541", schemas.ReasonEvalError}, {"/work", "FILE:etc", schemas.ReasonEvalError},
		{"/work", "%7e/x", schemas.ReasonEvalError}, {"/work", "%20/etc/passwd", schemas.ReasonEvalError}, {"/work", "x%00", schemas.ReasonEvalError},
		{"/work", "%2fetc%2fpasswd", schemas.ReasonDenyDefault}, {"/work", "x%41", schemas.ReasonAllowRule}, {"/work", "http://x", schemas.ReasonEvalError}, {"/work", "a:/b", schemas.ReasonEvalError},
		{"/work", strings.Repeat("x/", 2048), schemas.ReasonEvalError}, {"/work", strings.Repeat("x", 300), schemas.ReasonEvalError},
	} {
		d := decide(t, p, "x", `{"a":"`+x.arg+`"}`, top+x.dir)
		if d.Reason != x.want {
			t.Errorf("%.40s in %s: %s (%s), want %s", x.arg, x.dir, d.Reason, d.Say, x.want)
		}
	}
	for _, arg := range []string{`7`, `null`, `["/work"]`, `true`} {
		if d := decide(t, p, "x", `{"a":`+arg+`}`, "/"); d.Reason != schemas.ReasonEvalError {
			t.Errorf("%s: %+v", arg, d)
		}
	}
	for _, dir := range []string{"", "work"} {
		if d := decide(t, p, "x", `{"a":"file"}`, dir); d.Reason != schemas.ReasonEvalError {
			t.Errorf("in %q: %+v", dir, d)
		}
	}
}

// The rule does not change if its directory is replaced by a symlink after the policy was
// read.
func TestUnderReplaced(t *testing.T) {
	top := tree(t)
	dir := top + "/work/dir"
	p := rules(t, "rules: [{id: r, allow: x, args: [{at: $.a, under: "+dir+"}]}]")
	if d := decide(t, p, "x", `{"a":"`+dir+`/secret"}`, "/"); !d.Allow {
		t.Fatal(d)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(top+"/other", dir); err != nil {
		t.Fatal(err)
	}
	d := decide(t, p, "x", `{"a":"`+dir+`/secret"}`, "/")
	if d.Allow {
		t.Errorf("the rule followed: %+v", d)
	}
	if want := []string{top + "/other/secret", dir + "/secret"}; !slices.Equal(d.Targets, want) {
		t.Errorf("targets %q, want %q", d.Targets, want)
	}
}

// The rule's own path may be a symlink when the policy is read.
func TestUnderLink(t *testing.T) {
	top := tree(t)
	p := rules(t, "rules: [{id: r, allow: x, args: [{at: $.a, under: "+top+"/link}]}]")
	for arg, want := range map[string]bool{"/link/file": true, "/work/file": true, "/link/out/secret": false, "/other": false} {
		if d := decide(t, p, "x", `{"a":"`+top+arg+`"}`, "/"); d.Allow != want {
			t.Errorf("%s: %+v", arg, d)
		}
	}
}

func TestTargets(t *testing.T) {
	top := tree(t)
	p := rules(t, `
default: allow
rules:
  - {id: r, allow: x, args: [{at: $.path, under: /}], expects: [/cache, "example.com:1"]}
  - {id: s, allow: y}
`)
	for _, x := range []struct {
		tool, args string
		want       []string
	}{
		{"x", `{"path":"a/../b"}`, []string{"/cache", top + "/b", "example.com:1"}},
		{"x", `{"path":"work/in/f","to":"rel/x"}`, []string{"/cache", top + "/rel/x", top + "/work/dir/f", top + "/work/in/f", "example.com:1"}}, // denied: all that it may name
		{"y", `{"path":"rel"}`, []string{}},
		{"z", `{"path":"rel","deep":[{"k":"/a/./b/"},["https://h/x","h:1","10.0.0.1:5","http://[::ffff:1.2.3.4]","[::1]:9","h"]]}`,
			[]string{"/a/b", "1.2.3.4:80", "10.0.0.1:5", "[::1]:9", "h:1", "h:443"}},
		{"z", `{"a":"/x\\y","b":"/\ud83d\ude00","c":"/nul\u0000","d":"file:///q%20r","e":7,"f":null}`, []string{"/q r", `/x\\y`, "/😀"}},
		{"z", `{"a":"` + top + `/work/out/../f"}`, []string{top + "/f", top + "/work/f"}},
		{"z", `{"a":"` + top + `/work/loop"}`, []string{top + "/work/loop"}},
		{"z", `{}`, []string{}}, {"z", `{"separator":"/","b":"/../."}`, []string{}}, {"x", `{"path":"/"}`, []string{"/", "/cache", "example.com:1"}},
	} {
		d := decide(t, p, x.tool, x.args, top)
		slices.Sort(x.want)
		if !slices.Equal(d.Targets, x.want) || d.TargetsCut {
			t.Errorf("%s %s: %q cut %v, want %q", x.tool, x.args, d.Targets, d.TargetsCut, x.want)
		}
	}
}

// A flood of names does not hide the names that the rules read, and it is recorded that
// there were more.
func TestTargetsCut(t *testing.T) {
	p := rules(t, "default: allow\nrules: [{id: r, deny: x, args: [{at: $.z, under: /secret}]}]")
	var many []string
	for range 100 {
		many = append(many, `"/a/`+strings.Repeat("b", len(many))+`"`)
	}
	d := decide(t, p, "x", `{"a":[`+strings.Join(many, ",")+`],"z":"/secret/x"}`, "/")
	if !d.TargetsCut || len(d.Targets) != schemas.MaxTargets || !slices.Contains(d.Targets, "/secret/x") {
		t.Errorf("%+v", d)
	}
	long := strings.Repeat("/"+strings.Repeat("c", 200), 15)
	d = decide(t, p, "x", `{"a":["`+long+`1","`+long+`2","`+long+`3","`+long+`4","`+long+`5","`+long+`6"]}`, "/")
	if !d.TargetsCut || len(d.Targets) != 5 {
		t.Errorf("%d targets, cut %v", len(d.Targets), d.TargetsCut)
	}
}

// A server that finds no file may look for its name in another Unicode form.
func TestUnderForms(t *testing.T) {
	top := tree(t)
	if err := os.Symlink("../other", top+"/work/caf\u00e9"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(top+"/work/e\u0301", 0o755); err != nil {
		t.Fatal(err)
	}
	p := rules(t, "rules: [{id: r, allow: x, args: [{at: $.a, under: "+top+"/work}]}]")
	for arg, want := range map[string]string{
		"caf\u00e9/secret": schemas.ReasonDenyDefault, "cafe\u0301/secret": schemas.ReasonEvalError,
		"e\u0301/x": schemas.ReasonAllowRule, "\u00e9/x": schemas.ReasonEvalError, "\u00fc": schemas.ReasonAllowRule, "u\u0308/e\u0301": schemas.ReasonAllowRule,
	} {
		if d := decide(t, p, "x", `{"a":"`+top+"/work/"+arg+`"}`, "/"); d.Reason != want {
			t.Errorf("%+q: %s (%s), want %s", arg, d.Reason, d.Say, want)
		}
	}
}
