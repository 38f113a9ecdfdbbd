package schemas

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// fileRules makes a rule set from lines "NUMBER ACTION PATH OPERATION…".
func fileRules(t *testing.T, files, exec, lines string) *FileRules {
	t.Helper()
	f := &FileRules{Schema: SchemaFileRules, PolicyDigest: "sha256:" + strings.Repeat("0", 64), FilesDefault: files, ExecDefault: exec}
	for line := range strings.Lines(lines) {
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		r := FileRule{ID: "r" + w[0], Action: w[1], Path: w[2], On: w[3:]}
		fmt.Sscan(w[0], &r.Number)
		f.Rules = append(f.Rules, r)
	}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	return f
}

// The first rule that names the operation and covers the path decides, by component.
func TestFileRulesDecide(t *testing.T) {
	f := fileRules(t, "allow", "deny", `
		1 allow /a/b read
		2 deny  /a read write create delete
		2 deny  /x\\y\xff write
		3 deny  /usr/local exec
		4 allow /usr exec
		4 allow / exec`)
	f.Rules = f.Rules[:5]
	for _, c := range []struct{ path, op, want string }{
		{"/a/b", "read", "1 false"}, {"/a/b/c", "read", "1 false"}, {"/a/bc", "read", "2 true"}, {"/a/b", "write", "2 true"},
		{"/a", "delete", "2 true"}, {"/ab", "read", "0 false"}, {"/", "read", "0 false"}, {"/a/b", "exec", "0 true"},
		{"/x\\y\xff/z", "write", "2 true"}, {`/x\\y\xff`, "write", "0 false"}, {"/x\\y", "write", "0 false"},
		{"/usr/local/bin/x", "exec", "3 true"}, {"/usr/bin/x", "exec", "4 false"}, {"/opt/x", "exec", "0 true"},
		{"", "read", "2 true"}, {"detached:/a/b", "read", "2 true"}, {"", "exec", "3 true"},
	} {
		if n, deny := f.Decide([]byte(c.path), c.op); fmt.Sprint(n, deny) != c.want {
			t.Errorf("%s %q: %d %v, expected %s", c.op, c.path, n, deny, c.want)
		}
	}
	if !f.Unnamed(HookExec) || f.Unnamed(HookRead) || f.Numbers() != 4 {
		t.Errorf("without a name: exec %v, read %v; %d rules", f.Unnamed(HookExec), f.Unnamed(HookRead), f.Numbers())
	}
	all := fileRules(t, "deny", "allow", "1 allow / read")
	for op, want := range map[string]string{"read": "1 false", "write": "0 true", "exec": "0 false"} {
		if n, deny := all.Decide([]byte("/"), op); fmt.Sprint(n, deny) != want {
			t.Errorf("%s of all: %d %v, expected %s", op, n, deny, want)
		}
	}
	if n, deny := all.Decide(nil, "read"); n != 0 || !deny {
		t.Errorf("an unknown path is covered by a rule that allows all: %d %v", n, deny)
	}
}

// Automatic rules come first, are only for what the rules refuse, refuse nothing, and leave
// the numbers as they are.
func TestFileRulesAutomatic(t *testing.T) {
	logs := []string{"/tmp/run/policy.ndjson", "/tmp/run/s\xff"}
	f := fileRules(t, "deny", "allow", "1 allow /tmp/run/policy.ndjson write\n2 deny /tmp write\n2 deny /var read").AllowLogs(logs)
	wrong := f.Check()
	if n := f.Automatic(); wrong != nil || n != 1 || f.Numbers() != 2 || f.Rules[0].Path != `/tmp/run/s\xff` {
		t.Fatalf("%d automatic, %d others, %v: %+v", n, f.Numbers(), wrong, f.Rules)
	}
	for _, c := range []struct{ path, op, want string }{
		{"/tmp/run/s\xff", "write", "0 false"}, {"/tmp/run/s\xff", "read", "0 true"}, {"/tmp/run/s\xff", "delete", "0 true"},
		{"/tmp/run/s\xffx", "write", "2 true"}, {"/tmp/run", "create", "0 true"}, {"/var/x", "read", "2 true"}, {"", "write", "2 true"},
	} {
		if n, deny := f.Decide([]byte(c.path), c.op); fmt.Sprint(n, deny) != c.want {
			t.Errorf("%s %q: %d %v, expected %s", c.op, c.path, n, deny, c.want)
		}
	}
	if f := fileRules(t, "allow", "deny", "1 deny /etc write").AllowLogs(logs); f.Automatic() != 0 {
		t.Errorf("rules for what is allowed: %+v", f.Rules)
	}
	rule := f.Rules[0]
	for what, change := range map[string]func(*FileRule){
		"denies": func(r *FileRule) { r.Action = DecisionDeny }, "reads": func(r *FileRule) { r.On = []string{HookRead} },
		"writes and more": func(r *FileRule) { r.On = []string{HookWrite, HookRead} }, "another id": func(r *FileRule) { r.ID = "x" },
	} {
		f.Rules[0] = rule
		change(&f.Rules[0])
		if f.Check() == nil {
			t.Errorf("an automatic rule that %s is taken", what)
		}
	}
	f.Rules = []FileRule{f.Rules[1], rule}
	if f.Check() == nil {
		t.Error("an automatic rule after another one is taken")
	}
	if f.Rules = slices.Repeat([]FileRule{rule}, len(LogLayers())+1); f.Check() == nil {
		t.Error("more automatic rules than logs are taken")
	}
}

// What a rule denies stays denied: nothing moves out of a rule, and nothing that holds
// what a rule denies moves at all.
func TestFileRulesMoves(t *testing.T) {
	f := fileRules(t, "allow", "deny", `
		1 allow /w/open read write create delete
		2 deny  /w/secret read
		3 deny  /w/log write delete
		4 deny  /w/log/old read
		5 allow /w/in/free read
		6 deny  /w/in read
		7 allow /usr exec
		7 allow /w/tools exec`)
	for _, c := range []struct{ from, to, want string }{
		{"/w/a", "/w/b", "0 false"},               // nothing but exec is denied, and that at both
		{"/w/a", "/w/tools/a", "0 true"},          // could then be executed
		{"/w/tools/a", "/w/b", "0 false"},         // could be executed, and cannot be any more
		{"/w/tools", "/w/t", "0 false"},           // the same of a directory
		{"/w/a", "/usr", "0 true"},                //
		{"/w/a", "/", "0 true"},                   // something below would be executable
		{"/w/secret", "/w/b", "2 true"},           // the thing itself
		{"/w/secret/x", "/w/b", "2 true"},         // what lies below
		{"/w/secret/x", "/w/secret/y", "0 false"}, // stays denied
		{"/w/secret/x", "/w/open/y", "2 true"},
		{"/w", "/v", "2 true"}, // a directory above
		{"/", "/v", "2 true"},
		{"/w/log/x", "/w/x", "3 true"},
		{"/w/log/x", "/w/log/y", "0 false"},
		{"/w/log", "/w/log2", "3 true"},
		{"/w/log/old/x", "/w/log/x", "4 true"},
		{"/w/in/a", "/w/in/free/a", "6 true"},
		{"/w/in/free/a", "/w/b", "0 false"},
		{"/w/in/a", "/w/in", "6 true"}, // a rule allows below the new path
		{"", "/w/b", "2 true"},         // from where cannot be told
		{"/w/secret/x", "", "2 true"},  // to where cannot be told
	} {
		if n, deny := f.Moves([]byte(c.from), []byte(c.to)); fmt.Sprint(n, deny) != c.want {
			t.Errorf("%s to %s: %d %v, expected %s", c.from, c.to, n, deny, c.want)
		}
	}
	// A rule that another one hides denies nothing.
	hidden := fileRules(t, "allow", "allow", "1 allow /a read\n2 deny /a/b read")
	if n, deny := hidden.Moves([]byte("/a"), []byte("/c")); deny {
		t.Errorf("a hidden rule refuses: %d", n)
	}
}

// No rule of a set has a number above the set's count: verify refuses such a line.
func TestRulesNumbers(t *testing.T) {
	f := fileRules(t, "allow", "allow", "2 deny /a read\n 2 deny /b read\n 5 deny /c exec")
	n := NetworkRules{Rules: []NetworkRule{{Number: 2}, {Number: 5}, {Number: 5}}}
	if f.Numbers() != 5 || n.Numbers() != 5 || new(FileRules).Numbers() != 0 || new(NetworkRules).Numbers() != 0 {
		t.Errorf("%d, %d", f.Numbers(), n.Numbers())
	}
}
