package noise

import (
	"strings"
	"testing"
)

func testRules(t testing.TB) []rule {
	t.Helper()
	rules, err := parseRules(text)
	if err != nil {
		t.Fatalf("noise.txt: %v", err)
	}
	return rules
}

func TestTable(t *testing.T) {
	rules := testRules(t)
	dropping := false
	for i, r := range rules {
		if dropping && !r.drop {
			t.Errorf("rule %s: a keep rule after a drop rule reads as if it had no effect", r.id)
		}
		dropping = dropping || r.drop
		for _, o := range rules[:i] {
			if o.form == r.form && string(o.parts[0]) == string(r.parts[0]) && len(o.parts) == 1 {
				t.Errorf("rule %s: pattern %s is there already", r.id, r.parts[0])
			}
		}
	}
}

func TestNoise(t *testing.T) {
	m := newTable(testRules(t))
	for path, want := range map[string]string{
		"/etc/ld.so.cache": "loader.cache", "/lib/x86_64-linux-gnu/libc.so.6": "loader.lib", "/lib32/a": "loader.lib32",
		"/lib64/ld-linux-x86-64.so.2": "loader.lib64", "/usr/lib/locale/C.utf8/LC_CTYPE": "loader.usr_lib",
		"/usr/share/locale/en/LC_MESSAGES/x.mo": "runtime.locale", "/etc/localtime": "runtime.localtime",
		"/etc/ssl/openssl.cnf": "runtime.openssl", "/usr/pyvenv.cfg": "runtime.python", "/usr/bin/pyvenv.cfg": "runtime.python",
		"/usr/bin/python3._pth": "runtime.python", "/usr/bin/python3.12._pth": "runtime.python", "/usr/bin/pybuilddir.txt": "runtime.python",
		"/w/node_modules/a/index.js":              "runtime.node",
		"/usr/bin/node":                           "runtime.node_binary",
		"/usr/local/bin/node":                     "runtime.node_binary",
		"/r/.rustup/toolchains/s/lib/librustc.so": "loader.rustup",
		"/r/.rustup/toolchains/s/lib/libstd.so.1": "loader.rustup",
		"/w/target/debug/libx.so":                 "loader.target",
		"/w/target/x86_64/release/deps/libx.so.2": "loader.target",
		"/w/target/a/build/libx.so":               "loader.target",
		"/proc/meminfo":                           "introspect.proc",
		"/proc/42/maps":                           "introspect.proc",
		"/proc/42/task/42/mem":                    "introspect.proc",
		"/proc/1/stat":                            "introspect.proc",
		"/proc/1/environment":                     "introspect.proc",
		"/proc/environ":                           "introspect.proc",
		"/sys/kernel/mm/transparent_hugepage/x":   "introspect.sys",
		"/dev/null":                               "introspect.dev",
		"/dev/memory":                             "introspect.dev",
		"/dev/shm":                                "introspect.dev",
		"/lib":                                    "", "/usr/lib": "", "/proc": "", "/dev": "", "/usr/libexec/x": "", "/usr/lib64/x": "", "/usr/local/lib/x": "",
		"/w/target/libx.so": "", "/w/target/debug/x": "", "/w/debug/libx.so": "", "/r/.rustup/toolchains/s/rustc": "",
		"/usr/bin/python3.11._pth": "", "/etc/passwd": "", "/w/node_modules": "", "/etc/ld.so.cached": "", "/w/lib/x": "", "/w/bin/node": "", "/usr/bin/node2": "",
		"/proc/1/environ": "", "/proc/1/mem": "", "/proc/7/maps": "", "/proc/7/fd/3": "", "/proc/7/fd": "", "/proc/7/fdinfo/3": "",
		"/proc/7/root/etc/shadow": "", "/proc/7/cwd": "", "/proc/7/exe": "", "/proc/7/task/8/environ": "", "/proc/7/smaps": "",
		"/proc/0042/maps": "introspect.proc", "/proc/99999999999999999999/maps": "introspect.proc",
		"/dev/mem": "", "/dev/kmem": "", "/dev/port": "", "/proc/kcore": "", "/dev/shm/x": "", "/dev/shm/a/b": "",
	} {
		got := ""
		if i := m.Find([]byte(path), 42); i >= 0 {
			got = m.rules[i].id
		}
		if got != want {
			t.Errorf("%s: rule %q, want %q", path, got, want)
		}
	}
}

func TestBadTables(t *testing.T) {
	for table, want := range map[string]string{
		"drop a.b open exact":                                     "expected verdict",
		"drop a.b open exact /x":                                  "expected verdict",
		"lose a.b open exact /x why":                              "verdict",
		"drop A.b open exact /x why":                              "id",
		"drop ab open exact /x why":                               "id",
		"drop a.b exec exact /x why":                              "operations",
		"drop a.b open glob /x why":                               "form",
		"drop a.b open exact x why":                               "pattern",
		"drop a.b open exact /x/ why":                             "pattern",
		"drop a.b open prefix /x why":                             "pattern",
		"drop a.b open contains /a/&b/ why":                       "pattern",
		"drop a.b open contains // why":                           "pattern",
		"drop a.b open library &/a/ why":                          "pattern",
		"drop a.b open process a/b why":                           "pattern",
		"drop a.b open process task why":                          "pattern",
		`drop a.b open exact /\x why`:                             "backslash",
		"drop a.b open exact /x why\ndrop a.b open exact /y else": "another verdict or reason",
		"\xff": "UTF-8",
	} {
		if _, err := parseRules(table); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", table, err, want)
		}
	}
	if rules, err := parseRules("# nothing\n\n  \n"); err != nil || len(rules) != 0 {
		t.Error(rules, err)
	}
}

func FuzzTable(f *testing.F) {
	f.Add(text)
	f.Add("drop a.b open contains /a/&/b/ why it is so")
	f.Fuzz(func(t *testing.T, table string) {
		rules, err := parseRules(table)
		if err != nil {
			return
		}
		for _, r := range rules {
			if r.id == "" || r.reason == "" || len(r.parts) == 0 {
				t.Fatalf("half a rule: %+v", r)
			}
		}
		newTable(rules).Find([]byte("/proc/1/task/2/mem"), 3)
	})
}

func FuzzMatch(f *testing.F) {
	for _, s := range []string{"/lib/x", "/proc/1/task/2/fd/3", "/proc/self/mem", "/target/debug/a.so", "/proc/1//", "/proc/18446744073709551617/mem"} {
		f.Add(s, uint32(1))
	}
	m := newTable(testRules(f))
	f.Fuzz(func(t *testing.T, path string, pid uint32) {
		path = "/" + path
		i := m.Find([]byte(path), pid)
		// The index must not change what the table says.
		want := -1
		for j := range m.rules {
			if m.rules[j].matches([]byte(path), pid) && (m.rules[j].form != formLibrary || isLibrary([]byte(path))) {
				if m.rules[j].drop {
					want = j
				}
				break
			}
		}
		if i != want {
			t.Fatalf("%q: rule %d, by the table %d", path, i, want)
		}
		for _, p := range []string{"/dev/shm/", "/proc/kcore", "/dev/mem"} {
			if i >= 0 && (path == p || p[len(p)-1] == '/' && strings.HasPrefix(path, p)) {
				t.Fatalf("%q was dropped by %s", path, m.rules[i].id)
			}
		}
	})
}
