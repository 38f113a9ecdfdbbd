//go:build linux

package cmd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
	"github.com/runner-evidence/runner/testdata/workload/expect"
)

// TestChildStatus: runner-exec ends as its command ends.
func TestChildStatus(t *testing.T) {
	requireBPF(t)
	dir := shortDir(t)
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		argv []string
		code int
		kept bool // an archive is written
	}{
		{[]string{"true"}, 0, true},
		{[]string{"sh", "-c", "exit 23"}, 23, true},
		{[]string{"sh", "-c", "exit 255"}, 255, true},
		{[]string{"sh", "-c", "kill -KILL $$"}, 128 + 9, true},
		{[]string{"sh", "-c", "kill -TERM $$"}, 128 + 15, true},
		{[]string{"no-such-command-anywhere"}, 127, false},
		{[]string{plain}, 126, false},
		{[]string{"help"}, 127, false},
	} {
		t.Run(strings.Join(c.argv, " "), func(t *testing.T) {
			m := measure(t, nil, c.argv...)
			if m.code != c.code {
				t.Errorf("expected exit %d: %v", c.code, m.outcome)
			}
			if c.kept {
				openArchive(t, m.path)
			}
		})
	}
}

// TestUntouched: the command has the streams, directory, environment and descriptors that
// runner-exec was given.
func TestUntouched(t *testing.T) {
	requireBPF(t)
	dir := shortDir(t)
	script := `cat; echo out; echo err >&2; pwd; umask; env | grep -v ^_= | sort; ls /proc/self/fd | wc -l`
	bare := exec.Command("sh", "-c", script)
	c, m := measuring(t, nil, "sh", "-c", script)
	for _, p := range []*exec.Cmd{bare, c} {
		p.Dir, p.Stdin = dir, strings.NewReader("from standard input\n")
		p.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "TMPDIR=" + m.tmp, "ODD=a\nb", "EMPTY="}
	}
	want, got := call(t, bare), call(t, c)
	if got.stdout != want.stdout || got.code != want.code {
		t.Errorf("measured:\n%s\nbare:\n%s", got.stdout, want.stdout)
	}
	if !strings.Contains(got.stderr, "err\n") || len(strings.Split(strings.TrimSpace(got.stderr), "\n")) != 2 {
		t.Errorf("expected the command's line and one summary line on stderr: %q", got.stderr)
	}
}

// TestUnprivileged: a user without privileges can make a run if only runner-capture has
// three capabilities and the user has a delegated cgroup.
func TestUnprivileged(t *testing.T) {
	requireBPF(t)
	own, work, as := unprivileged(t)
	path := filepath.Join(work, "run.tar.gz")
	shapes := filepath.Join(own, "shapes")
	o := call(t, as(filepath.Join(own, "runner-exec"), "--archive", path, "--", shapes, "fork", work))
	if o.code != 0 {
		t.Fatal(o)
	}
	a := openArchive(t, path)
	a.complete(t)
	compare(t, append(madeBy(t, o.stdout), expect.Exec(shapes)), a.lines)

	o = call(t, as(tool("runner-exec"), "--archive", path+".2", "--", tool("shapes"), "fork", work))
	if o.code != 4 || testkit.Exists(path+".2") || !strings.Contains(o.stderr, "hint:") || !strings.Contains(o.stderr, "setcap") {
		t.Errorf("without capabilities: expected exit 4 and what to type: %v", o)
	}
}

// unprivileged prepares what a user without privileges needs: the tools with capabilities
// in one directory, another to work in, and commands as that user in a delegated cgroup.
func unprivileged(t *testing.T) (own, work string, as func(name string, args ...string) *exec.Cmd) {
	t.Helper()
	own = shortDir(t) // a directory that the user cannot change
	for _, name := range append([]string{"shapes"}, tools...) {
		b, err := os.ReadFile(tool(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(own, name), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Programs(t, "file capabilities", "setcap")
	const capabilities = "cap_bpf,cap_perfmon,cap_net_admin=ep"
	if out, err := exec.Command("setcap", capabilities, filepath.Join(own, "runner-capture")).CombinedOutput(); err != nil {
		testkit.Missing(t, "file capabilities", fmt.Errorf("setcap: %w: %s", err, out))
	}
	inner := delegated(t)
	work = shortDir(t)
	if err := os.Chown(work, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	return own, work, func(name string, args ...string) *exec.Cmd {
		c := inCgroup(t, inner, command(t, name, args...))
		c.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		c.Env = []string{"PATH=" + own + ":/usr/bin:/bin", "TMPDIR=" + work}
		return c
	}
}

// TestCoveredProc: a command that covers /proc keeps its archive, which is for those that the umask says.
func TestCoveredProc(t *testing.T) {
	requireBPF(t)
	testkit.Programs(t, "a covered /proc", "unshare", "mount")
	dir := shortDir(t)
	archive := filepath.Join(dir, "run.tar.gz")
	o := call(t, command(t, "unshare", "-m", "--propagation", "private", "sh", "-c", `umask 077; exec "$@"`, "sh",
		tool("runner-exec"), "--archive", archive, "--", "sh", "-c", "mount -t tmpfs none /proc; test ! -e /proc/self"))
	if o.code != 0 {
		t.Fatal(o)
	}
	if st, err := os.Stat(archive); err != nil || st.Mode().Perm() != 0o600 {
		t.Error(st.Mode(), err)
	}
	if o := call(t, command(t, "runner-verify", "--require", "kernel=complete,drops=0,cgroup=clean", archive)); o.code != 0 {
		t.Error(o)
	}
}
