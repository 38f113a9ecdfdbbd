package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestCollectKilled: the directory is removed even if runner-exec or the keeper is killed.
func TestCollectKilled(t *testing.T) {
	for _, who := range []string{"runner-exec", keeperName} {
		c := command(t, "--no-kernel", "--archive", "a", "--policy-log", "p", "--", "sh", "-c", "touch mark; sleep 0.5")
		temp := t.TempDir()
		c.Env = append(os.Environ(), "TMPDIR="+temp)
		c.Stdout, c.Stderr = nil, nil
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		testkit.Await(t, "the command", func() bool { return exists(filepath.Join(c.Dir, "mark")) })
		pid := c.Process.Pid
		if who != "runner-exec" {
			if pid = pidOf(pid, who); pid == 0 {
				t.Fatalf("there is no %s", who)
			}
		}
		syscall.Kill(pid, syscall.SIGKILL)
		c.Wait()
		testkit.Await(t, "an empty TMPDIR", func() bool { return len(leftovers(t, temp)) == 0 })
		if exists(filepath.Join(c.Dir, "a")) != (who == keeperName) {
			t.Errorf("%s killed, archive: %v", who, exists(filepath.Join(c.Dir, "a")))
		}
	}
}

// TestScopeCollect: with a cgroup, a log is complete when no process is left in the
// cgroup, and not before.
func TestScopeCollect(t *testing.T) {
	needCgroup(t)
	const sdk = "L=$" + schemas.EnvSDKLog + "; "
	for _, c := range []struct{ name, script, lines, facts string }{
		{"late opener", sdk + `{ sleep 0.2; echo 1 >>"$L"; } >/dev/null 2>&1 &`, "1",
			"complete bytes=2 lines=1 dropped=0 after_end=2 unterminated=no replaced=no writers_at_end=none stopped="},
		{"late holder", sdk + `exec 3>>"$L"; echo 0 >&3; { sleep 0.2; echo 1 >&3; } >/dev/null 2>&1 &`, "0 1",
			"complete bytes=4 lines=2 dropped=0 after_end=2 unterminated=no replaced=no writers_at_end=open stopped="},
		{"killed after grace", sdk + `exec 3>>"$L"; printf 1 >&3; setsid sleep 60 >/dev/null 2>&1 </dev/null &`, "1",
			"complete bytes=1 lines=1 dropped=0 after_end=0 unterminated=yes replaced=no writers_at_end=open stopped="},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			r := call(t, "--archive", "a", "--keep", "kept", "--grace", "1s", "--agent-shim", "openai-agents", "--", "sh", "-c", c.script)
			if r.code != 0 || time.Since(begin) > 10*time.Second {
				t.Fatalf("%v after %v", r, time.Since(begin))
			}
			log := readLog(t, filepath.Join(r.dir, "kept/sdk.log.ndjson"), schemas.StreamSDKLog)
			if got := strings.Join(log.lines, " "); got != c.lines || log.String() != c.facts {
				t.Errorf("got  %q, %v\nwant %q, %s", got, log, c.lines, c.facts)
			}
		})
	}
}

// TestScopePolicy: each part of a policy file reaches the stage that enforces it.
func TestScopePolicy(t *testing.T) {
	needCgroup(t)
	file := script(t, "policy.yaml", "schema: runner.policy.v0\ndefault: deny\nnetwork:\n  default: allow\n  rules:\n"+
		"    - id: no-metadata\n      deny: 169.254.169.254\n      ports: [80]\nexec: {rules: [{id: no-bin, deny: /proc/none/x}]}\n", 0o644)
	r := call(t, "--archive", "a", "--keep", "kept", "--policy", file, "--agent-shim", "openai-agents", "--", "sh", "-c",
		"echo p >>$"+schemas.EnvPolicyLog+"; echo s >>$"+schemas.EnvSDKLog)
	if r.code != 0 {
		t.Fatal(r)
	}
	b, err := os.ReadFile(filepath.Join(r.dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for line := range strings.Lines(string(b)) {
		var h schemas.StageHealth
		if schemas.Unmarshal([]byte(strings.TrimSuffix(line, "\n")), &h) == nil && h.Schema == schemas.SchemaStageHealth {
			said = append(said, h.Stage+" "+strings.Join(h.Notes, " "))
		}
	}
	want := []string{"runner-exec ", "runner-exec ", "runner-normalize --filtered --noise v0 --processes --windows",
		"runner-correlate --policy /proc/self/fd/3 --sdk /proc/self/fd/4"}
	for _, w := range want {
		if !slices.Contains(said, w) {
			t.Errorf("expected %q in %q", w, said)
		}
	}
	i := slices.IndexFunc(said, func(s string) bool { return strings.HasPrefix(s, "runner-capture ") })
	if i < 0 {
		t.Fatalf("no line of runner-capture in %q", said)
	}
	network, files, _ := strings.Cut(strings.TrimPrefix(said[i], "runner-capture "), "\n")
	n, err := schemas.ParseNetworkRules([]byte(network))
	if err != nil || n.Default != "allow" || len(n.Rules) != 1 || n.Rules[0].ID != "no-metadata" {
		t.Errorf("%v: %q", err, said[i])
	}
	f, err := schemas.ParseFileRules([]byte(strings.TrimSpace(files)))
	if err != nil || f.FilesDefault != "allow" || len(f.Rules) != 1 || f.Rules[0].ID != "no-bin" || f.PolicyDigest != n.PolicyDigest {
		t.Errorf("%v: %q", err, said[i])
	}
	for _, f := range []string{"policy", "sdk"} {
		log := readLog(t, filepath.Join(r.dir, "kept", f+".log.ndjson"), f+".log")
		if len(log.lines) != 1 || log.lines[0] != f[:1] {
			t.Errorf("%s: %q", f, log.lines)
		}
	}
}

// TestCollectNoSpace: when a log cannot be stored, the command is ended and there is no
// record.
func TestCollectNoSpace(t *testing.T) {
	if out, err := exec.Command("unshare", "-m", "true").CombinedOutput(); err != nil {
		testkit.Skip(t, "a full file system needs a mount namespace", err, ": ", string(out))
	}
	for _, script := range []string{
		`base64 /dev/urandom | head -c 20000000 >>"$L"; touch ran; sleep 20`, // while it runs
		`base64 /dev/urandom | head -c 20000000 >>"$L"; sleep 0.2`,           // noticed when it is read back, or earlier
	} {
		c := command(t)
		c.Args = []string{"unshare", "-m", "sh", "-c", `mkdir small && mount -t tmpfs -o size=5m none small && TMPDIR=$PWD/small exec "$@"`, "sh",
			filepath.Join(bin, "runner-exec"), "--no-kernel", "--archive", "a", "--policy-log", "p", "--", "sh", "-c", "L=$" + schemas.EnvPolicyLog + "; " + script}
		path, err := exec.LookPath("unshare")
		if err != nil {
			t.Fatal(err)
		}
		c.Path = path
		begin := time.Now()
		r := outcome(t, c, c.Run())
		if r.code != 125 || !strings.Contains(r.stderr, "storing a log") || strings.Count(r.stderr, "error:") != 1 || time.Since(begin) > 10*time.Second {
			t.Errorf("%v", r)
		}
		if rest := leftovers(t, r.dir, "small", "ran"); len(rest) > 0 {
			t.Errorf("not removed: %q", rest)
		}
	}
}
