//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// needCgroup ends the test where no cgroup can be made. With RUNNER_REQUIRE_BPF=1
// that is a failure.
func needCgroup(t *testing.T) {
	t.Helper()
	sc, err := newScope("", tool.NewRunID(), &tool.Env{Stderr: os.Stderr})
	if err == nil {
		sc.close()
		if err = sc.remove(time.Second); err == nil {
			return
		}
	}
	testkit.Missing(t, "runs in a cgroup, which need write access to cgroup v2", err)
}

// scopeOf is where the cgroup of a run must have been.
func scopeOf(t *testing.T, id string) string {
	t.Helper()
	own, err := cgroup.Own()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(own, "runner-"+id)
}

// pidOf finds a stage by its name below the process parent, 0 if there is none.
func pidOf(parent int, name string) int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, p := range stats {
		b, _ := os.ReadFile(p)
		end := bytes.LastIndexByte(b, ')')
		if end < 0 {
			continue
		}
		f := strings.Fields(string(b[end+1:]))
		if f[0] == "Z" || f[1] != strconv.Itoa(parent) {
			continue
		}
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(p), "cmdline"))
		if first, _, _ := bytes.Cut(args, []byte{0}); filepath.Base(string(first)) == name {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(p)))
			return pid
		}
	}
	return 0
}

func TestScopeRun(t *testing.T) {
	needCgroup(t)
	id := tool.NewRunID()
	r := call(t, "--run-id", id, "--archive", "a", "--", "sh", "-c", "cat /proc/self/cgroup; exit 3")
	if r.code != 3 || r.stderr != "runner-pack: summary\n" || len(leftovers(t, r.dir, "a")) > 0 {
		t.Errorf("%v", r)
	}
	if !strings.Contains(r.stdout, "/runner-"+id+"\n") {
		t.Errorf("the command was not in its cgroup: %s", r.stdout)
	}
	if exists(scopeOf(t, id)) {
		t.Errorf("the cgroup was not removed")
	}
}

// TestScopeStatus: a start that fails in any way leaves nothing, and a stream without a
// seal is not complete.
func TestScopeStatus(t *testing.T) {
	needCgroup(t)
	for _, c := range []struct {
		name   string
		argv   []string
		how    string
		code   int
		stderr string
	}{
		{"signal", []string{"sh", "-c", "kill -9 $$"}, "", 137, ""},
		{"no #!", []string{script(t, "bare", "exit 23\n", 0o755)}, "", 23, ""},
		{"no interpreter", []string{script(t, "lost", "#!/no/such/interpreter\n", 0o755)}, "", 127, "interpreter"},
		{"interpreter denied", []string{script(t, "dir", "#!/etc/passwd\n", 0o755)}, "", 126, "permission denied"},
		{"cannot capture", []string{"touch", "ran"}, "cannot", 4, "no BTF"},
		{"capture dies", []string{"touch", "ran"}, "die", 125, "the command was not run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := tool.NewRunID()
			cmd := command(t, append([]string{"--run-id", id, "--archive", "a", "--"}, c.argv...)...)
			cmd.Env = append(os.Environ(), "FAKE_CAPTURE="+c.how)
			r := outcome(t, cmd, cmd.Run())
			if r.code != c.code || !strings.Contains(r.stderr, c.stderr) {
				t.Errorf("expected %d and %q, got %v", c.code, c.stderr, r)
			}
			if c.stderr != "" {
				if rest := leftovers(t, r.dir); len(rest) > 0 {
					t.Errorf("not removed: %q", rest)
				}
				if strings.Contains(r.stderr, "truncated") {
					t.Errorf("consequences are reported in addition to the cause: %v", r)
				}
			}
			if exists(scopeOf(t, id)) {
				t.Errorf("the cgroup was not removed")
			}
		})
	}
}

// TestSurvivors: a daemon is killed after the grace period; child cgroups are removed too.
func TestSurvivors(t *testing.T) {
	needCgroup(t)
	id := tool.NewRunID()
	scope := scopeOf(t, id)
	begin := time.Now()
	r := call(t, "--run-id", id, "--archive", "a", "--grace", "200ms", "--", "sh", "-c",
		"mkdir "+scope+"/inner "+scope+"/inner/most; setsid sleep 60 </dev/null >/dev/null 2>&1 & echo $! >"+scope+"/inner/most/cgroup.procs")
	if r.code != 0 || exists(scope) {
		t.Errorf("%v; cgroup left: %v", r, exists(scope))
	}
	if d := time.Since(begin); d < 200*time.Millisecond || d > 5*time.Second {
		t.Errorf("the grace of 200ms took %v", d)
	}
}

// TestImpatience: the second TERM after the command's end kills its survivors,
// and the record is still whole.
func TestImpatience(t *testing.T) {
	needCgroup(t)
	id := tool.NewRunID()
	c := command(t, "--run-id", id, "--archive", "a", "--grace", "1m", "-v", "--", "sh", "-c", "setsid sleep 60 </dev/null >/dev/null 2>&1 & exit 8")
	errs := filepath.Join(t.TempDir(), "stderr")
	f, _ := os.Create(errs)
	defer f.Close()
	c.Stderr = f
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := func(text string) func() bool {
		return func() bool { b, _ := os.ReadFile(errs); return bytes.Contains(b, []byte(text)) }
	}
	testkit.Await(t, "the command's end", said("command ended"))
	c.Process.Signal(syscall.SIGTERM)
	testkit.Await(t, "an answer to the first TERM", said("again to kill"))
	c.Process.Signal(syscall.SIGTERM)
	if r := outcome(t, c, c.Wait()); r.code != 8 || !exists(filepath.Join(r.dir, "a")) || exists(scopeOf(t, id)) {
		t.Errorf("%v", r)
	}
}

// TestKilledStage kills every stage, and runner-exec, with SIGKILL at several
// moments. Nothing may be left: no archive, no file, no cgroup, no command.
func TestKilledStage(t *testing.T) {
	needCgroup(t)
	moments := []struct {
		name string
		how  string
		run  string // the command's script
		mark string // a file that says that the moment has come
	}{
		{"before ready", "slow", "touch ran", "slow"},
		{"while running", "", "touch mark; sleep 60", "mark"},
		{"while draining", "", "setsid sh -c 'sleep 0.1; touch mark; sleep 60' & exit 0", "mark"},
		{"after the seal", "linger", "exit 0", "sealed"},
	}
	for _, stage := range []string{"runner-capture", "runner-normalize", "runner-correlate", "runner-pack", "runner-exec"} {
		for _, m := range moments {
			if m.how == "linger" && stage == "runner-exec" {
				continue // the record is complete by then, and no process is left that would remove it
			}
			for _, keep := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s keep=%v", stage, m.name, keep), func(t *testing.T) {
					killedStage(t, stage, m.how, m.run, m.mark, keep)
				})
			}
		}
	}
}

// TestKilledBeforeTheCommand: the cgroup of a killed runner-capture is removed before the command is started
// there. What failed is runner-capture, not the command; and if it did not, the cgroup is named.
func TestKilledBeforeTheCommand(t *testing.T) {
	needCgroup(t)
	for how, says := range map[string]string{
		"gone":    "runner-capture was killed by signal 9 (killed) before the record was complete; the command was not run",
		"removed": "the run's cgroup ",
	} {
		c := command(t, "--archive", "a", "--", "true")
		c.Env = append(os.Environ(), "FAKE_CAPTURE="+how)
		r := outcome(t, c, c.Run())
		if r.code != 125 || strings.Count(r.stderr, "error:") != 1 || !strings.Contains(r.stderr, says) || exists(filepath.Join(r.dir, "a")) {
			t.Errorf("%s: expected 125 and one error with %q, got %v", how, says, r)
		}
	}
}

func killedStage(t *testing.T, stage, how, run, mark string, keep bool) {
	id := tool.NewRunID()
	args := []string{"--run-id", id, "--archive", "a", "--grace", "1m"}
	if keep {
		args = append(args, "--keep", "kept", "--agent-shim", "openai-agents", "--policy-log", "log")
	}
	c := command(t, append(args, "--", "sh", "-c", run)...)
	temp := t.TempDir()
	c.Env = append(os.Environ(), "FAKE_CAPTURE="+how, "TMPDIR="+temp)
	out, err := os.Create(filepath.Join(t.TempDir(), "stderr")) // survivors hold it open
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c.Stdout, c.Stderr = nil, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, mark, func() bool { return exists(filepath.Join(c.Dir, mark)) })
	pid := c.Process.Pid
	if stage != "runner-exec" {
		testkit.Await(t, stage, func() bool { pid = pidOf(c.Process.Pid, stage); return pid != 0 })
	}
	begin := time.Now()
	syscall.Kill(pid, syscall.SIGKILL)
	r := outcome(t, c, c.Wait())
	b, _ := os.ReadFile(out.Name())
	r.stderr = string(b)
	if stage != "runner-exec" {
		if r.code != 125 || strings.Count(r.stderr, "error:") != 1 || !strings.Contains(r.stderr, stage+" was killed by signal 9") {
			t.Errorf("expected 125 and one error that names %s, got %v", stage, r)
		}
		if d := time.Since(begin); d > 3*time.Second {
			t.Errorf("cleaning up took %v", d)
		}
	}
	scope := scopeOf(t, id)
	testkit.Await(t, "the cgroup's end", func() bool { return !exists(scope) })
	testkit.Await(t, "an empty TMPDIR", func() bool { return len(leftovers(t, temp)) == 0 })
	known := []string{mark}
	if stage == "runner-exec" && keep {
		known = append(known, "kept") // made by the killed process; it is empty
		if rest := leftovers(t, filepath.Join(r.dir, "kept")); len(rest) > 0 {
			t.Errorf("left in --keep: %q", rest)
		}
	}
	if rest := leftovers(t, r.dir, known...); len(rest) > 0 {
		t.Errorf("not removed: %q", rest)
	}
}

// TestUnprivileged: a user who may not make a cgroup gets exit code 4 and a hint that
// says what to type, and the command does not run.
func TestUnprivileged(t *testing.T) {
	needCgroup(t)
	if os.Geteuid() != 0 {
		testkit.Skip(t, "becoming another user needs root")
	}
	c := command(t, "--", "touch", "ran")
	for _, d := range []string{c.Dir, filepath.Dir(c.Dir)} {
		os.Chmod(d, 0o777)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	r := outcome(t, c, c.Run())
	if r.code != 4 || !strings.Contains(r.stderr, "hint: start it in a cgroup that is yours") ||
		!strings.Contains(r.stderr, "Delegate=yes") || !strings.Contains(r.stderr, "sudo runner-exec") {
		t.Errorf("%v", r)
	}
	if rest := leftovers(t, r.dir); len(rest) > 0 {
		t.Errorf("not removed: %q", rest)
	}
	if _, err := exec.LookPath("true"); err == nil {
		c := command(t, "--cgroup-parent", "/tmp", "--", "true")
		if r := outcome(t, c, c.Run()); r.code != 4 || !strings.Contains(r.stderr, "cgroup v2") {
			t.Errorf("a parent that is not a cgroup: %v", r)
		}
	}
}

func TestRunIDTaken(t *testing.T) {
	needCgroup(t)
	id := tool.NewRunID()
	dir := scopeOf(t, id)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(dir)
	if r := call(t, "--run-id", id, "--", "true"); r.code != 125 || !strings.Contains(r.stderr, "already exists") {
		t.Errorf("%v", r)
	}
	if !exists(dir) {
		t.Error("the other run's cgroup was removed")
	}
}
