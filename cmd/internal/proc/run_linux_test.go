package proc

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// newRunner returns a runner that ends with the test.
func newRunner(t testing.TB, p *Policy) *Runner {
	r := NewRunner(p)
	t.Cleanup(r.Close)
	return r
}

func run(t testing.TB, p *Policy, q *Request, c Caps) *Outcome {
	t.Helper()
	r := newRunner(t, p)
	o, caps := r.Decide(q.Append(nil), c.Append(nil))
	defer r.Close()
	if o.Code == 0 {
		r.Run(o, caps)
	}
	return o
}

func shell(script string) *Request { return request("/bin/sh", "-c", script) }

var enough = Caps{1 << 20, 1 << 20, 20000, 0}

// TestRun: what a program gets and gives.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, x := range map[string]struct {
		q    *Request
		want string
	}{
		"output":      {shell("echo out; echo err >&2; exit 3"), "3 out\n|err\n"},
		"input":       {&Request{Argv: [][]byte{[]byte("/bin/cat")}, Stdin: []byte("abc")}, "0 abc|"},
		"environment": {&Request{Argv: request("/usr/bin/env").Argv, Env: []Var{{[]byte("A"), []byte("b=c")}}}, "0 A=b=c\n|"},
		"nothing":     {request("/usr/bin/env"), "0 |"},
		"directory":   {&Request{Argv: request("/bin/pwd").Argv, Cwd: []byte(dir)}, "0 " + dir + "\n|"},
		"signal":      {shell("kill -TERM $$"), "143 |"},
		"not read":    {&Request{Argv: request("/bin/true").Argv, Stdin: make([]byte, 1<<20)}, "0 |"},
		"own name":    {&Request{Argv: [][]byte{[]byte("/bin/sh"), []byte("-c"), []byte("echo \"$0 $1\""), []byte("a b"), []byte("*")}}, "0 a b *\n|"},
	} {
		o := run(t, nil, x.q, enough)
		if got := fmt.Sprintf("%d %s|%s", o.ExitCode, o.Stdout, o.Stderr); o.Code != 0 || o.RespFlags != 0 || got != x.want {
			t.Errorf("%s: %v %s %q, expected %q", name, o.Code, o.Why, got, x.want)
		}
	}
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\necho here\n"), 0o755))
	if o := run(t, nil, &Request{Argv: request("./tool").Argv, Cwd: []byte(dir)}, enough); string(o.Stdout) != "here\n" {
		t.Errorf("a relative program does not start at the directory: %v %s", o.Code, o.Why)
	}
}

// TestCodes: each code, from what leads to it.
func TestCodes(t *testing.T) {
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "plain"), nil, 0o644))
	for _, x := range []struct {
		q    *Request
		c    Caps
		want Code
	}{
		{request(dir + "/none"), enough, SpawnFailed}, {request(dir), enough, SpawnFailed}, {request(dir + "/plain"), enough, SpawnFailed}, {request("true"), enough, SpawnFailed},
		{&Request{Argv: request("/bin/true").Argv, Cwd: []byte(dir + "/none")}, enough, SpawnFailed},
		{shell("sleep 20"), Caps{1, 1, 50, 0}, Timeout}, {shell("trap '' TERM HUP INT; sleep 20"), Caps{1, 1, 50, 0}, Timeout},
		{shell("printf abc"), Caps{2, 9, 9999, 0}, OutputLimit}, {shell("printf abc"), Caps{3, 0, 9999, 0}, 0}, {shell("printf abc >&2"), Caps{0, 3, 9999, 0}, 0},
		{shell("printf a >&2"), Caps{9, 0, 9999, 0}, OutputLimit}, {shell(":"), Caps{0, 0, 9999, 0}, 0},
		{shell("printf abc; printf def >&2"), Caps{9, 9, 9999, 5}, OutputLimit}, {shell("printf abc; printf def >&2"), Caps{9, 9, 9999, 6}, 0},
		{shell("yes"), Caps{100, 100, 9999, 0}, OutputLimit}, {shell("yes | head -c 100000"), Caps{100000, 0, 9999, 0}, 0}, {shell("yes | head -c 100001"), Caps{100000, 0, 9999, 0}, OutputLimit},
	} {
		if o := run(t, nil, x.q, x.c); o.Code != x.want {
			t.Errorf("%s with %+v: %v (%s), expected %v", x.q.Argv, x.c, o.Code, o.Why, x.want)
		}
	}
}

// TestOver: what ended at a limit says which one that was, its value, and where to change it.
func TestOver(t *testing.T) {
	bound, err := ParsePolicy("p.json", []byte(runOSFile(`"/bin/true"`, `"/bin/sh"`, `["-[a]*", "a.*b", "\\.x*"]`, `[]`, `"max_arg_bytes": 10`, `"max_arg_bytes": 100`, `"max_runtime_ms": 1000`, `"max_runtime_ms": 70`)))
	testkit.Must(t, err)
	for _, x := range []struct {
		p    *Policy
		q    *Request
		c    Caps
		want string
	}{
		{nil, shell("printf abc"), Caps{2, 9, 9999, 0}, "standard output has more than 2 bytes (max_stdout_bytes in the caps of the request)"},
		{nil, shell("printf abc >&2"), Caps{9, 2, 9999, 0}, "standard error has more than 2 bytes (max_stderr_bytes in the caps of the request)"},
		{nil, shell("printf abc; printf def >&2"), Caps{9, 9, 9999, 5}, "both outputs have more than 5 bytes (max_total_bytes in the caps of the request)"},
		{nil, shell("sleep 20"), Caps{1, 1, 50, 0}, "still running after 50 ms (timeout_ms in the caps of the request)"},
		{bound, shell("sleep 20"), Caps{1, 1, 50, 0}, "still running after 50 ms (timeout_ms in the caps of the request)"},
		{bound, shell("sleep 20"), Caps{1, 1, 0, 0}, "still running after 70 ms (the bound of the policy: the request has no timeout_ms in its caps)"},
	} {
		if o := run(t, x.p, x.q, x.c); o.Code != Timeout && o.Code != OutputLimit || o.Why != x.want {
			t.Errorf("%s with %+v: %v (%s), expected %q", x.q.Argv, x.c, o.Code, o.Why, x.want)
		}
	}
}

// TestDescendants: nothing of a process is left when it has ended, and nothing that holds its output makes it wait.
func TestDescendants(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{
		"in the background": "sleep 300 & echo $! >DIR/pid",
		"in a session":      "setsid sh -c 'echo $$ >DIR/pid; exec sleep 300' & while ! test -s DIR/pid; do sleep 0.01; done",
		"without a parent":  "(setsid sh -c 'echo $$ >DIR/pid; exec sleep 300' &) ; while ! test -s DIR/pid; do sleep 0.01; done",
		"when it is killed": "(setsid sh -c 'echo $$ >DIR/pid; exec sleep 300' &) ; while ! test -s DIR/pid; do sleep 0.01; done; echo; sleep 300",
	} {
		for _, grouped := range []bool{true, false} {
			os.Remove(dir + "/pid")
			r := newRunner(t, nil)
			if !grouped {
				r.groups.off = true
			}
			c := enough
			if name == "when it is killed" {
				c.MaxStdout = 0
			}
			began := time.Now()
			o, caps := r.Decide(shell(strings.ReplaceAll(script, "DIR", dir)).Append(nil), c.Append(nil))
			r.Run(o, caps)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s: it took %v", name, took)
			}
			var pid int
			fmt.Sscan(string(testkit.Read(t, dir+"/pid")), &pid)
			if err := unix.Kill(pid, 0); pid == 0 || err != unix.ESRCH {
				t.Errorf("%s, grouped %v: process %d: %v", name, grouped, pid, err)
			}
		}
	}
	if left := children(); len(left) > 0 {
		t.Errorf("children are left: %v", left)
	}
}

// TestLarge: more than a pipe holds goes in and comes out.
func TestLarge(t *testing.T) {
	in := bytes.Repeat([]byte("0123456789abcde\n"), 1<<20)
	o := run(t, nil, &Request{Argv: request("/bin/cat").Argv, Stdin: in}, Caps{uint32(len(in)), 0, 20000, 0})
	if o.Code != 0 || !bytes.Equal(o.Stdout, in) {
		t.Errorf("%v %s: %d bytes", o.Code, o.Why, len(o.Stdout))
	}
	if o := run(t, nil, &Request{Argv: request("/bin/cat").Argv, Stdin: in}, Caps{uint32(len(in)) - 1, 0, 20000, 0}); o.Code != OutputLimit {
		t.Errorf("a byte more than the limit: %v", o.Code)
	}
}

// TestLinks: what a policy allows by a directory is there when links are followed, and what it allows by a digest is
// that file.
func TestLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	testkit.Must(t, err)
	testkit.Must(t, os.Mkdir(dir+"/tools", 0o755))
	path, err := exec.LookPath("cat")
	testkit.Must(t, err)
	cat := testkit.Read(t, path)
	testkit.Must(t, os.WriteFile(dir+"/tools/cat", cat, 0o755))
	testkit.Must(t, os.WriteFile(dir+"/tools/script", []byte("#!/bin/sh\necho $1\n"), 0o755))
	testkit.Must(t, os.Symlink("/bin/sh", dir+"/tools/sh"))
	testkit.Must(t, os.Symlink("cat", dir+"/tools/dog"))
	testkit.Must(t, os.Symlink("tools", dir+"/also"))
	p, err := ParsePolicy("p.json", []byte(runOSFile(`"deps/x07/"`, `"`+dir+`/tools", "`+dir+`/also"`, `["-[a]*", "a.*b", "\\.x*"]`, `[]`, `"max_live"`, `"max_exe_bytes": 9999, "max_live"`)))
	testkit.Must(t, err)
	few := Caps{100, 100, 900, 0}
	for name, want := range map[string]Code{"/tools/cat": 0, "/tools/dog": 0, "/also/cat": 0, "/tools/script": 0, "/tools/sh": PolicyDenied, "/tools/none": SpawnFailed, "/tools/../tools/cat": 0} {
		o := run(t, p, &Request{Argv: request(dir + name).Argv, Stdin: []byte("in")}, few)
		if o.Code != want {
			t.Errorf("%s: %v (%s), expected %v", name, o.Code, o.Why, want)
		}
	}
	sum := sha256.Sum256(cat)
	byDigest := func(hexDigits string) *Policy {
		p, err := ParsePolicy("p.json", []byte(ruleFile(`{"kind": "path", "path": "deps/tool"}`, `{"kind": "sha256", "sha256_hex": "`+hexDigits+`"}`, `"mode": "prefix", "prefix": ["-a"]`, `"mode": "any"`)))
		testkit.Must(t, err)
		return p
	}
	for digits, want := range map[string]Code{hex.EncodeToString(sum[:]): 0, strings.Repeat("0", 64): PolicyDenied} {
		if o := run(t, byDigest(digits), request(dir+"/tools/dog"), few); o.Code != want {
			t.Errorf("digest %s: %v (%s), expected %v", digits, o.Code, o.Why, want)
		}
	}
}

// TestNothingIsLeft: after a thousand processes that were ended at any moment there is no process, no descriptor and no
// cgroup more than before.
func TestNothingIsLeft(t *testing.T) {
	t.Run("plain", func(t *testing.T) { nothingIsLeft(t, 1000, false) })
	t.Run("recorded", func(t *testing.T) { nothingIsLeft(t, 300, true) })
}

func nothingIsLeft(t *testing.T, n int, recorded bool) {
	r := newRunner(t, nil)
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		testkit.Must(t, err)
		return len(list)
	}
	left := func() int { return 0 }
	if g := r.groups.take(); g != nil { // groups of this test alone
		g.release()
		dir, err := cgroup.MakeBelow(r.groups.in, "test-")
		testkit.Must(t, err)
		defer cgroup.Remove(dir)
		r.groups.close()
		r.groups = &groups{}
		r.groups.once.Do(func() { r.groups.start(dir) })
		r.groups.keep()
		left = func() int {
			list, _ := filepath.Glob(dir + "/proc-*")
			return len(list)
		}
	}
	one := func(i int) {
		q := shell("echo a; (sleep 100 & sleep 100) & sleep 0.00" + fmt.Sprint(i%10))
		o, c := r.Decide(q.Append(nil), (&Caps{100, 100, uint32(1 + i%12), 0}).Append(nil))
		if r.Run(o, c); o.Code != 0 && o.Code != Timeout {
			t.Errorf("%v: %s", o.Code, o.Why)
		}
	}
	before := open()
	if recorded {
		testkit.Must(t, r.Record(&memoryLog{left: -1, t: t}))
	}
	one(0)
	all := make(chan int)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := range all {
				one(i)
			}
		})
	}
	for i := range n {
		all <- i
	}
	close(all)
	workers.Wait()
	r.Close()
	if c := children(); len(c) > 0 || open() > before || left() > 0 {
		t.Errorf("children %v; %d descriptors, before %d; %d cgroups", c, open(), before, left())
	}
}
