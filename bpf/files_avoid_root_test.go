//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// Every known way around a path: each opens the same file.
func TestFilesCannotBeAvoided(t *testing.T) {
	needLSM(t)
	p := startCaller(t, filesCaller)
	d := tree(t, "secret/x", "secret/sub/x", "free/x", "on/", "same/x")
	testkit.Must(t, os.Link(filepath.Join(d, "same/x"), filepath.Join(d, "free/same")))
	testkit.Must(t, os.Symlink(filepath.Join(d, "secret"), filepath.Join(d, "alias")))
	testkit.Must(t, os.Symlink(d, filepath.Join(d, "self")))
	s := enforceFiles(t, p.dir, fileRules("allow", "allow", fileRule(1, "deny", d+"/secret", "read", "delete"), fileRule(2, "deny", d+"/same/x", "read"),
		fileRule(3, "deny", d+"/self/free/late", "read")))
	fileAttempts(t, p, s, d, []attempt{
		f("read", "@/secret/x", 1), f("read", "@/free/../secret/x", 1), f("read", "@/alias/x", 1), f("read", "@/self/secret/sub/x", 1),
		f("read", "/proc/self/root@/secret/x", 1), f("descriptor", "@/secret/x", 1), f("descriptor", "@/secret", 1),
		f2("from", "@/secret", "x", 1), f2("from", "@/free", "../secret/sub/x", 1), f2("chroot", "@/secret", "/sub/x", 1), f2("chroot", "@", "/secret/x", 1),
		f3("linked", "", "@/free", "@/secret/x", 1), f3("bind", "@/secret", "@/on", "@/on/x", 1), f3("bind", "@/secret/sub", "@/on", "@/on/x", 1),
		f3("bind", "@/secret/x", "@/free/x", "@/free/x", 1), f3("bind", "/", "@/on", "@/on@/secret/x", 1), f2("clone", "@/secret", "x", 1), f2("clone", "@/secret/sub", "x", 1),
		f2("handle", "@", "@/secret/x", 1), f3("handle", "@", "cold", "@/secret/sub/x", 1), f("read", "@/free/same", 2), f("read", "@/same/x", 2),
		f("uring read", "@/secret/x", 1), f3("uring read", "", "async", "@/secret/x", 1), f("uring read", "@/free/x", nobody), f3("uring read", "", "async", "@/free/x", nobody),
		f("uring unlink", "@/secret/x", 1), f3("uring unlink", "", "async", "@/secret/x", 1), f2("uring rename", "@/secret/x", "@/free/y", 1),
		f("create", "@/free/late", nobody), f("read", "@/free/late", 3), f("read", "@/free/x", nobody),
	})
	if n, err := s.FileUnresolved(); err != nil || n != 0 {
		t.Errorf("%d refusals because no path was found, %v", n, err)
	}
}

// interpreted is a program for which the kernel starts an interpreter.
func interpreted(interp string) []byte {
	machine := map[string]uint16{"amd64": 62, "arm64": 183}[runtime.GOARCH]
	const base = 0x400000
	name := append([]byte(interp), 0)
	at := uint64(64 + 2*56)
	all := at + uint64(len(name))
	var b bytes.Buffer
	b.Write([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	for _, v := range []any{uint16(2), machine, uint32(1), uint64(base + at), uint64(64), uint64(0), uint32(0), uint16(64), uint16(56), uint16(2), uint16(0), uint16(0), uint16(0),
		uint32(3), uint32(4), at, base + at, base + at, uint64(len(name)), uint64(len(name)), uint64(1),
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), all, all, uint64(0x1000)} {
		binary.Write(&b, binary.LittleEndian, v)
	}
	b.Write(name)
	return b.Bytes()
}

// A program is refused, and each interpreter that the kernel would start for one.
func TestFilesExec(t *testing.T) {
	needLSM(t)
	p := startCaller(t, filesCaller)
	d := tree(t, "bin/", "free/")
	shell, err := filepath.EvalSymlinks("/bin/sh")
	testkit.Must(t, err)
	b, err := os.ReadFile(shell)
	testkit.Must(t, err)
	for name, text := range map[string][]byte{
		"bin/sh": b, "free/sh": b, "free/script": []byte("#!" + d + "/bin/sh\n"), "free/good": []byte("#!" + d + "/free/sh\n"),
		"free/twice": []byte("#!" + d + "/free/script\n"), "free/elf": interpreted(d + "/bin/sh"), "bin/script": []byte("#!" + d + "/free/sh\n"),
	} {
		testkit.Must(t, os.WriteFile(filepath.Join(d, name), text, 0o755))
	}
	testkit.Must(t, os.Symlink(filepath.Join(d, "bin/sh"), filepath.Join(d, "free/link")))
	all := []attempt{
		f("exec", "@/bin/sh", 1), f("exec", "@/free/sh", nobody), f("exec", "@/free/script", 1), f("exec", "@/free/twice", 1), f("exec", "@/free/good", nobody),
		f("exec", "@/free/elf", 1), f("exec", "@/bin/script", 1), f("exec", "@/free/link", 1), f("exec", "/proc/self/root@/bin/sh", 1), f("read", "@/bin/sh", nobody),
		f2("link", "@/bin/sh", "@/free/sh2", 1), f2("rename", "@/bin/sh", "@/free/sh2", 1), f("memfd", "@/free/sh", nobody),
	}
	s := enforceFiles(t, p.dir, fileRules("allow", "allow", fileRule(1, "deny", d+"/bin", "exec")))
	fileAttempts(t, p, s, d, all)
	s.Close()
	s = enforceFiles(t, p.dir, fileRules("allow", "deny", fileRule(1, "allow", d+"/free", "exec")))
	fileAttempts(t, p, s, d, []attempt{
		f("exec", "@/bin/sh", 0), f("exec", "@/free/sh", nobody), f("exec", "@/free/script", 0), f("exec", "@/free/elf", 0), f("memfd", "@/free/sh", 0),
		f2("link", "@/bin/sh", "@/free/sh2", 0), f2("rename", "@/bin/sh", "@/free/sh2", 0), f3("bind", "@/bin", "@/free", "@/free/sh", nobody),
	})
}

// What is not allowed is refused by default, also under an allowed name.
func TestFilesDefault(t *testing.T) {
	needLSM(t)
	p := startCaller(t, filesCaller)
	d := tree(t, "work/x", "work/on/", "other/x")
	s := enforceFiles(t, p.dir, fileRules("deny", "allow", fileRule(1, "allow", d+"/work", "read", "write", "create", "delete"), fileRule(2, "allow", "/proc", "read")))
	fileAttempts(t, p, s, d, []attempt{
		f("read", "@/work/x", nobody), f("write", "@/work/x", nobody), f("create", "@/work/y", nobody), f2("rename", "@/work/y", "@/work/z", nobody),
		f("read", "@/other/x", 0), f("create", "@/other/y", 0), f("times", "@/other/x", 0), f("setxattr", "@/other/x", 0), f("times", "@/work/x", nobody),
		f2("link", "@/other/x", "@/work/w", 0), f2("rename", "@/other/x", "@/work/w", 0), f2("rename", "@/work/z", "@/other/z", 0),
		f3("bind", "@/other", "@/work/on", "@/work/on/x", 0), f2("clone", "@/other", "x", 0), f2("chroot", "@/other", "/x", 0),
		f("descriptor", "@/other/x", 0), f("descriptor", "@/work/x", nobody),
	})
}

// An overlay would show files under names and inodes of its own.
func TestFilesOverlay(t *testing.T) {
	needLSM(t)
	p := startCaller(t, filesCaller)
	d := tree(t, "secret/x", "on/")
	if e := p.try(at(d, call{Do: "overlay", Via: "@/secret", Name: "@/on", To: "@/on/x"})); e == syscall.ENODEV {
		testkit.Skip(t, "overlays", "this kernel has none: ", e)
	} else if e != 0 {
		t.Fatal("an overlay without rules: ", e)
	}
	s := enforceFiles(t, p.dir, fileRules("allow", "allow", fileRule(1, "deny", d+"/secret", "read")))
	if e := p.try(at(d, call{Do: "overlay", Via: "@/secret", Name: "@/on", To: "@/on/x"})); e != syscall.EPERM {
		t.Errorf("a file was opened through an overlay: %v", e)
	}
	if by, err := s.FileBlocked(); by[1] != 1 {
		t.Errorf("refusals %v, %v", by, err)
	}
}
