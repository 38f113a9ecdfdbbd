package main

import (
	"strings"
	"testing"

	"runner/schemas"
)

func testRules(t testing.TB) []rule {
	t.Helper()
	rules, err := parseRules(noiseText)
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
			t.Errorf("rule %s: a keep rule behind a drop rule reads as if it had no effect", r.id)
		}
		dropping = dropping || r.drop
		for _, o := range rules[:i] {
			if o.form == r.form && string(o.parts[0]) == string(r.parts[0]) && len(o.parts) == 1 {
				t.Errorf("rule %s: pattern %s is there already", r.id, r.parts[0])
			}
		}
		if _, ok := reasons[r.id]; ok {
			t.Errorf("rule id %s is taken", r.id)
		}
	}
}

func TestNoise(t *testing.T) {
	m := newMatcher(testRules(t))
	for path, want := range map[string]string{
		"/etc/ld.so.cache": "loader.cache", "/lib/x86_64-linux-gnu/libc.so.6": "loader.lib", "/lib32/a": "loader.lib32",
		"/lib64/ld-linux-x86-64.so.2": "loader.lib64", "/usr/lib/locale/C.utf8/LC_CTYPE": "loader.usr_lib",
		"/usr/share/locale/en/LC_MESSAGES/x.mo": "runtime.locale", "/etc/localtime": "runtime.localtime",
		"/etc/ssl/openssl.cnf": "runtime.openssl", "/usr/pyvenv.cfg": "runtime.python", "/usr/bin/pyvenv.cfg": "runtime.python",
		"/usr/bin/python3._pth": "runtime.python", "/usr/bin/python3.12._pth": "runtime.python", "/usr/bin/pybuilddir.txt": "runtime.python",
		"/w/node_modules/a/index.js":              "runtime.node",
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
		"/usr/bin/python3.11._pth": "", "/etc/passwd": "", "/w/node_modules": "", "/etc/ld.so.cached": "", "/w/lib/x": "",
		"/proc/1/environ": "", "/proc/1/mem": "", "/proc/7/maps": "", "/proc/7/fd/3": "", "/proc/7/fd": "", "/proc/7/fdinfo/3": "",
		"/proc/7/root/etc/shadow": "", "/proc/7/cwd": "", "/proc/7/exe": "", "/proc/7/task/8/environ": "", "/proc/7/smaps": "",
		"/proc/0042/maps": "introspect.proc", "/proc/99999999999999999999/maps": "introspect.proc",
		"/dev/mem": "", "/dev/kmem": "", "/dev/port": "", "/proc/kcore": "", "/dev/shm/x": "", "/dev/shm/a/b": "",
	} {
		got := ""
		if i := m.noise([]byte(path), 42); i >= 0 {
			got = m.rules[i].id
		}
		if got != want {
			t.Errorf("%s: rule %q, want %q", path, got, want)
		}
	}
}

// TestEvidence opens a path that is noise when it is opened in the plainest way.
func TestEvidence(t *testing.T) {
	const lib = "/usr/lib/x.so"
	failed := func(v int64) []edit { return []edit{user("/usr/lib", "x.so"), flags(0), ret(v)} }
	for _, c := range []struct {
		name  string
		op    string
		edits []edit
		noise bool
	}{
		{"read", "openat", []edit{opened(lib)}, true},
		{"directory", "openat", []edit{opened(lib), flags(0o200000 | 0o2000000)}, true},
		{"missing", "openat", failed(-2), true},
		{"not a directory", "openat", failed(-20), true},
		{"chroot elsewhere", "openat", []edit{opened(lib), marks(schemas.MarkCompat32)}, true},
		{"EPERM", "openat", failed(-1), false},
		{"EACCES", "openat", failed(-13), false},
		{"EROFS", "openat", failed(-30), false},
		{"ELOOP", "openat2", failed(-40), false},
		{"EXDEV", "openat2", failed(-18), false},
		{"ENOSYS", "openat2", failed(-38), false},
		{"write", "openat", []edit{opened(lib), flags(1)}, false},
		{"read and write", "openat", []edit{opened(lib), flags(2)}, false},
		{"odd access", "openat", []edit{opened(lib), flags(3)}, false},
		{"create", "openat", []edit{opened(lib), flags(0o100)}, false},
		{"truncate", "openat", []edit{opened(lib), flags(0o1000)}, false},
		{"append", "openat", []edit{opened(lib), flags(0o2000)}, false},
		{"tmpfile", "openat", []edit{opened(lib), flags(0o20000000)}, false},
		{"creat", "creat", []edit{opened(lib)}, false},
		{"failed write", "openat", []edit{user("/usr/lib", "x"), flags(1), ret(-2)}, false},
		{"block device", "openat", []edit{opened("/dev/sda"), func(e *schemas.RawEvent) { e.FileType = "blk" }}, false},
		{"char device", "openat", []edit{opened("/dev/tty"), func(e *schemas.RawEvent) { e.FileType = "chr" }}, true},
		{"user fault", "openat", []edit{opened(lib), marks(schemas.MarkUserFault)}, false},
		{"path fault", "openat", []edit{opened(lib), marks(schemas.MarkPathFault)}, false},
		{"truncated", "openat", []edit{opened(lib), marks(schemas.MarkPathTruncated)}, false},
		{"detached mount", "openat", []edit{opened(lib), marks(schemas.MarkDetached)}, false},
		{"disconnected", "openat", []edit{opened(lib), marks(schemas.MarkDisconnected)}, false},
		{"deleted", "openat", []edit{opened(lib), marks(schemas.MarkDeleted)}, false},
		{"descriptor raced", "openat", []edit{opened(lib), marks(schemas.MarkFDRace)}, false},
		{"text cut off", "openat", append(failed(-36), marks(schemas.MarkUserTruncated)), false},
		{"unknown outcome", "openat", []edit{path(lib), flags(0)}, false},
		{"unknown flags", "openat", []edit{path(lib), ret(3)}, false},
		{"success, path only spelled", "openat", []edit{user("/usr/lib", "x.so"), flags(0), ret(3)}, false},
		{"dots left", "openat", []edit{user("/", "/lib/../etc/shadow"), flags(0), ret(-2)}, false},
		{"relative", "openat", []edit{user("", "lib/../../x"), flags(0), ret(-9)}, false},
		{"other operation", "unlink", []edit{user("/usr/lib", "x.so"), ret(-2)}, false},
		{"exec", "exec", []edit{path("/usr/lib/git-core/git")}, false},
		{"nothing known", "openat", []edit{flags(0), ret(-14)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r raw
			r.add(42, 42, c.op, c.edits...)
			got := mustNormalize(t, r.bytes(t))
			if isNoise := len(got.lines) == 0; isNoise != c.noise {
				t.Errorf("noise: %v, want %v; %v", isNoise, c.noise, got.own().Filtered)
			}
		})
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
	f.Add(noiseText)
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
		newMatcher(rules).noise([]byte("/proc/1/task/2/mem"), 3)
	})
}

func FuzzMatch(f *testing.F) {
	for _, s := range []string{"/lib/x", "/proc/1/task/2/fd/3", "/proc/self/mem", "/target/debug/a.so", "/proc/1//", "/proc/18446744073709551617/mem"} {
		f.Add(s, uint32(1))
	}
	m := newMatcher(testRules(f))
	f.Fuzz(func(t *testing.T, path string, pid uint32) {
		path = "/" + path
		i := m.noise([]byte(path), pid)
		// The index must not change what the table says.
		want := -1
		for j := range m.rules {
			if m.rules[j].matches([]byte(path), pid, isLibrary([]byte(path))) {
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
