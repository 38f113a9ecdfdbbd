//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/testdata/workload/modules"
)

// needLSM ends a test on a kernel that does not run LSM programs.
func needLSM(t *testing.T) {
	t.Helper()
	if err := ProbeLSM(); err != nil {
		if modules.Has("bpf") && os.Geteuid() == 0 {
			t.Fatal("this kernel has LSM programs: ", err)
		}
		testkit.SkipUnless(t, "RUNNER_REQUIRE_LSM", "file rules by LSM programs", err)
	}
}

func fileRule(number uint32, action, path string, on ...string) schemas.FileRule {
	return schemas.FileRule{Number: number, ID: fmt.Sprintf("r%d", number), Action: action, Path: path, On: on}
}

func fileRules(files, exec string, rules ...schemas.FileRule) *schemas.FileRules {
	return &schemas.FileRules{Schema: schemas.SchemaFileRules, PolicyDigest: "sha256:" + strings.Repeat("0", 64),
		FilesDefault: files, ExecDefault: exec, Rules: rules}
}

// enforceFiles attaches only the file rules, without the probes.
func enforceFiles(t *testing.T, dir string, rules *schemas.FileRules) *Session {
	t.Helper()
	spec, err := objects.LoadFiles()
	if err != nil {
		t.Fatal(err)
	}
	spec.Programs = nil
	for name := range spec.Maps {
		if name != objects.FilesMapScope {
			delete(spec.Maps, name)
		}
	}
	coll, err := ebpf.NewCollection(&ebpf.CollectionSpec{Maps: spec.Maps})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := coll.Maps[objects.FilesMapScope].Put(uint32(0), uint32(f.Fd())); err != nil {
		t.Fatal(err)
	}
	s := &Session{types: kernelTypes, coll: []*ebpf.Collection{coll}}
	t.Cleanup(s.Close)
	if err := s.attachFiles(coll.Maps, rules); err != nil {
		t.Fatalf("%+v", err)
	}
	return s
}

// tree makes files and directories, which end with a slash, in a directory of the test.
func tree(t *testing.T, paths ...string) string {
	t.Helper()
	d := t.TempDir()
	for _, p := range paths {
		full := filepath.Join(d, p)
		dir := filepath.Dir(full)
		if strings.HasSuffix(p, "/") {
			dir = full
		}
		err := os.MkdirAll(dir, 0o755)
		if err == nil && dir != full {
			err = os.WriteFile(full, []byte("x"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// at replaces @ by a directory.
func at(d string, c call) call {
	for _, s := range []*string{&c.To, &c.Via, &c.Name} {
		*s = strings.ReplaceAll(*s, "@", d)
	}
	return c
}

// fileAttempts makes the calls and compares what is refused, and by which rule.
func fileAttempts(t *testing.T, p *caller, s *Session, d string, all []attempt) {
	t.Helper()
	want := map[uint32]uint64{}
	for _, a := range all {
		got := p.try(at(d, a.call))
		if a.by != nobody {
			want[uint32(a.by)]++
		}
		if (got == syscall.EPERM) != (a.by != nobody) {
			t.Errorf("%s: errno %d (%v), expected refusal by %d", a, int(got), got, a.by)
		}
		by, err := s.FileBlocked()
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(by) != fmt.Sprint(want) {
			t.Errorf("%s: refusals by rule %v, expected %v", a, by, want)
			want = by
		}
	}
}

func f(do, to string, by int) attempt { return attempt{call{Do: do, To: to}, by} }
func f2(do, via, to string, by int) attempt {
	return attempt{call{Do: do, Via: via, To: to}, by}
}
func f3(do, via, name, to string, by int) attempt {
	return attempt{call{Do: do, Via: via, Name: name, To: to}, by}
}

// Each operation is refused where a rule denies it, and only there.
func TestFilesOperations(t *testing.T) {
	needLSM(t)
	p := startCaller(t, filesCaller)
	d := tree(t, "read/x", "write/x", "create/x", "delete/x", "delete/dir/", "free/x", "free/y", "free/dir/", "all/pub/x", "all/x")
	s := enforceFiles(t, p.dir, fileRules("allow", "allow",
		fileRule(1, "deny", d+"/read", "read"), fileRule(2, "deny", d+"/write", "write"),
		fileRule(3, "deny", d+"/create", "create"), fileRule(4, "deny", d+"/delete", "delete"),
		fileRule(5, "allow", d+"/all/pub", "read", "write"), fileRule(6, "deny", d+"/all", "read", "write", "create", "delete"),
		fileRule(7, "deny", d+"/later", "read")))
	fileAttempts(t, p, s, d, []attempt{
		f("read", "@/read/x", 1), f("list", "@/read", 1), f("write", "@/read/x", nobody), f("both", "@/read/x", 1), f("path", "@/read/x", nobody),
		f("read", "@/read/absent", nobody), f("create", "@/read/new", nobody), f("unlink", "@/read/new", nobody),
		f("write", "@/write/x", 2), f("both", "@/write/x", 2), f("empty", "@/write/x", 2), f("read", "@/write/x", nobody),
		f("truncate", "@/write/x", 2), f("chmod", "@/write/x", 2), f("chown", "@/write/x", 2), f("times", "@/write/x", 2), f("now", "@/write/x", 2),
		f("setxattr", "@/write/x", 2), f("removexattr", "@/write/x", 2), f("mkdir", "@/write/dir", nobody), f("chmod", "@/write", 2), f("flags", "@/write/x", 2),
		f("create", "@/create/new", 3), f("mkdir", "@/create/dir", 3), f("mknod", "@/create/fifo", 3), f("symlink", "@/create/link", 3),
		f2("link", "@/free/x", "@/create/link", 3), f2("rename", "@/free/y", "@/create/y", 3), f("write", "@/create/x", nobody),
		f("unlink", "@/delete/x", 4), f("rmdir", "@/delete/dir", 4), f2("rename", "@/delete/x", "@/free/z", 4), f2("rename", "@/free/y", "@/delete/x", 4),
		f2("exchange", "@/free/y", "@/delete/x", 4), f("create", "@/delete/new", nobody), f("rmdir", "@/free/dir", nobody),
		f("read", "@/all/pub/x", nobody), f("write", "@/all/pub/x", nobody), f("unlink", "@/all/pub/x", 6), f("read", "@/all/x", 6), f("read", "@/all/public", nobody),
		f("mkdir", "@/later", nobody), f("list", "@/later", 7), f("create", "@/later/x", nobody), f("read", "@/later/x", 7),
		f("mkdir", "@/later2", nobody), f("list", "@/later2", nobody),
		f("tmpfile", "@/write", 2), f("tmpfile", "@/free", nobody),
	})
}

// What a rule denies cannot be given another name.
func TestFilesMoves(t *testing.T) {
	needLSM(t)
	p := startCaller(t, filesCaller)
	d := tree(t, "a/b/secret/x", "a/b/free", "a/c/", "free/x", "open/", "s2/x", "s2/sub/x")
	s := enforceFiles(t, p.dir, fileRules("allow", "allow",
		fileRule(1, "deny", d+"/a/b/secret", "read"), fileRule(2, "deny", d+"/s2", "read"), fileRule(3, "deny", d+"/a/later/x", "write")))
	fileAttempts(t, p, s, d, []attempt{
		f2("rename", "@/a/b/secret/x", "@/free/z", 1), f2("link", "@/a/b/secret/x", "@/free/z", 1), f2("rename", "@/a/b/secret", "@/z", 1),
		f2("rename", "@/a/b", "@/z", 1), f2("rename", "@/a", "@/z", 1), f2("exchange", "@/a", "@/free", 1), f2("exchange", "@/free", "@/a", 1),
		f2("rename", "@/a/b/free", "@/a/c/free", nobody), f2("rename", "@/a/b/secret/x", "@/a/b/secret/y", nobody), f2("rename", "@/s2/x", "@/a/b/secret/z", nobody),
		f2("link", "@/s2/sub/x", "@/s2/y", nobody), f2("rename", "@/free", "@/free2", nobody), f2("link", "@/free2/x", "@/a/b/secret/w", nobody),
		f("mkdir", "@/a/later", nobody), f2("rename", "@/a/later", "@/a/z", 3), f("create", "@/a/later/x", 3), f2("mount", "@/open", "@/a/b/secret", 1),
		f2("mount", "@/open", "@/a/b", 1), f2("mount private", "@/open", "@/a/b/secret", 1), f2("mount", "@/a/b/secret", "@/open", nobody), f("list", "@/open", 1), f("umount", "@/open", nobody), f("tmpfs", "@/s2/sub", 2),
		f("tmpfs", "@/open", nobody), f("umount", "@/open", nobody),
	})
}
