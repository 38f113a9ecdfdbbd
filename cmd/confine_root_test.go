//go:build linux

package cmd_test

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
	"github.com/runner-evidence/runner/testdata/workload/modules"
)

// secret makes a directory with a file that the rules of a policy file deny.
func secret(t *testing.T) (dir, policy string) {
	t.Helper()
	dir = shortDir(t)
	testkit.Must(t, os.Mkdir(dir+"/secret", 0o755))
	testkit.Must(t, os.WriteFile(dir+"/secret/key", []byte("secret\n"), 0o644))
	policy = dir + "/policy.yaml"
	testkit.Must(t, os.WriteFile(policy, []byte("schema: runner.policy.v0\nfiles: {rules: [{id: no-secret, deny: "+dir+"/secret}]}\n"), 0o644))
	return dir, policy
}

// TestMechanismsDiffer: rules that a mechanism cannot hold are refused with the rule and
// the reason, before the command starts; the choice takes the one that can.
func TestMechanismsDiffer(t *testing.T) {
	requireBPF(t)
	dir, policy := secret(t)
	archive := dir + "/run.tar.gz"
	run := func(mechanism string, extra ...string) outcome {
		os.Remove(dir + "/ran")
		return call(t, command(t, "runner-exec", append(append([]string{"--archive", archive, "--policy", policy, "--file-mechanism", mechanism}, extra...),
			"--", "sh", "-c", "touch "+dir+"/ran; cat "+dir+"/secret/key")...))
	}
	o := run(schemas.SourceLandlock)
	if o.code != 4 || testkit.Exists(dir+"/ran") || testkit.Exists(archive) ||
		!strings.Contains(o.stderr, "landlock: rule no-secret ("+dir+"/secret) denies read below a path where it is allowed") {
		t.Errorf("a denial below an allowed path by Landlock: %v", o)
	}
	for _, extra := range [][]string{{}, {"--harden"}} {
		o = run(schemas.FileMechanismAuto, extra...)
		if o.code == 0 || !testkit.Exists(dir+"/ran") || !strings.Contains(o.stderr, "Operation not permitted") || strings.Contains(o.stdout, "secret") {
			t.Fatalf("%q: %v", extra, o)
		}
		openArchive(t, archive).complete(t)
		testkit.Must(t, os.Remove(archive))
	}
	testkit.Must(t, os.WriteFile(policy, []byte("schema: runner.policy.v0\nfiles: {rules: [{id: later, deny: "+dir+"/none}]}\n"), 0o644))
	o = run(schemas.SourceFanotify)
	if o.code != 4 || testkit.Exists(dir+"/ran") || !strings.Contains(o.stderr, "fanotify: rule later ("+dir+"/none) has a path that does not exist") {
		t.Errorf("a path that does not exist: %v", o)
	}
	testkit.Must(t, os.WriteFile(policy, []byte("schema: runner.policy.v0\nfiles: {rules: [{id: no-write, deny: "+dir+"/secret, on: write}]}\n"), 0o644))
	o = run(schemas.SourceFanotify)
	if o.code != 4 || testkit.Exists(dir+"/ran") || !strings.Contains(o.stderr, "fanotify: rule no-write ("+dir+"/secret) tells write, create and delete apart") {
		t.Errorf("a rule for writing only: %v", o)
	}
}

// TestLogsUnderFileRules: under rules that deny everything where the logs of the run are,
// the command can write to them, to nothing else there, and the record says so.
func TestLogsUnderFileRules(t *testing.T) {
	requireBPF(t)
	for _, mechanism := range schemas.FileMechanisms {
		t.Run(mechanism, func(t *testing.T) {
			dir := shortDir(t)
			policy, archive := dir+"/policy.yaml", dir+"/run.tar.gz"
			testkit.Must(t, os.WriteFile(policy, []byte("schema: runner.policy.v0\ndefault: allow\n"+
				"files: {default: deny, rules: [{id: look, allow: /, on: read}, {id: void, allow: /dev/null}]}\n"), 0o644))
			c := command(t, "runner-exec", append([]string{"--archive", archive, "--policy", policy, "--file-mechanism", mechanism}, append(collecting(dir),
				"--", "sh", "-c", reports+`echo '{}' >>$ASSAY_RUNNER_POLICY_DECISION_LOG; : >$ASSAY_RUNNER_POLICY_DECISION_LOG; d=${ASSAY_RUNNER_SDK_EVENT_LOG%/*}; touch $d/x || mv $ASSAY_RUNNER_SDK_EVENT_LOG $d/y || rm $ASSAY_RUNNER_SDK_EVENT_LOG || echo kept`)...)...)
			c.Env = append(c.Env, "TMPDIR="+dir)
			o := call(t, c)
			if o.code == 4 && mechanism == schemas.SourceLSM && !modules.Has("bpf") {
				testkit.SkipUnless(t, "RUNNER_REQUIRE_LSM", "file rules by LSM programs", o)
			}
			if o.code != 0 || o.stdout != "kept\n" {
				t.Fatal(o)
			}
			a := openArchive(t, archive)
			a.complete(t)
			sdk, err := os.ReadFile(dir + "/sdk.log")
			testkit.Must(t, err)
			log, err := os.ReadFile(dir + "/policy.log")
			testkit.Must(t, err)
			if !strings.Contains(string(sdk), `"lines":3`) || !strings.Contains(string(log), `"line":"{}"`) {
				t.Errorf("the logs have %s and %s", sdk, log)
			}
			if notes := strings.Join(a.health.Notes, "\n"); !strings.Contains(notes, "automatic rules let the command write to (2)") || !strings.Contains(notes, "s4_file_policy: rules=2 ") {
				t.Errorf("the notes are %s", notes)
			}
		})
	}
}

// TestFilesOfUnprivileged: Landlock enforces an allow-list for a user without privileges.
func TestFilesOfUnprivileged(t *testing.T) {
	requireBPF(t)
	own, work, as := unprivileged(t)
	policy, path := work+"/policy.yaml", work+"/run.tar.gz"
	testkit.Must(t, os.WriteFile(policy, []byte("schema: runner.policy.v0\nfiles:\n  default: deny\n  rules:\n    - {id: look, allow: /, on: [read]}\n"+
		"    - {id: work, allow: "+work+"}\nexec: {default: deny, rules: [{id: system, allow: [/usr, /lib64]}]}\n"), 0o644))
	o := call(t, as(filepath.Join(own, "runner-exec"), "--archive", path, "--policy", policy, "--file-mechanism", schemas.SourceLandlock, "--",
		"sh", "-c", "echo 1 >"+work+"/in; echo 2 >"+own+"/out; "+own+"/shapes; grep NoNewPrivs /proc/self/status"))
	if o.code == 4 && strings.Contains(o.stderr, "landlock: this kernel") {
		testkit.Missing(t, "Landlock", o)
	}
	if o.code != 0 || o.stdout != "NoNewPrivs:\t1\n" || !testkit.Exists(work+"/in") || strings.Count(o.stderr, "Permission denied") != 2 {
		t.Fatal(o)
	}
	a := openArchive(t, path)
	a.complete(t)
	for _, value := range []string{own + "/out", own + "/shapes"} {
		if !slices.ContainsFunc(a.lines, func(l line) bool {
			return l.Type == schemas.EventFileBlocked && l.Value != nil && *l.Value == value && l.Rule != nil && *l.Rule == 0
		}) {
			t.Errorf("no line says that %s was refused by the default", value)
		}
	}
}

// TestMechanismOfUnprivileged: fanotify needs rights of runner-exec too. If only
// runner-capture has them, the next mechanism is taken.
func TestMechanismOfUnprivileged(t *testing.T) {
	requireBPF(t)
	own, work, as := unprivileged(t)
	testkit.Must(t, exec.Command("setcap", "cap_bpf,cap_perfmon,cap_net_admin,cap_sys_admin=ep", filepath.Join(own, "runner-capture")).Run())
	policy, path := work+"/policy.yaml", work+"/run.tar.gz"
	testkit.Must(t, os.WriteFile(policy, []byte("schema: runner.policy.v0\nfiles: {default: deny, rules: [{id: all, allow: [/usr, /lib64, /etc, /proc]}]}\n"), 0o644))
	o := call(t, as(filepath.Join(own, "runner-exec"), "--archive", path, "--policy", policy, "--", "true"))
	if o.code == 4 && strings.Contains(o.stderr, "landlock: this kernel") && strings.Contains(o.stderr, "fanotify: needs CAP_SYS_ADMIN, of runner-exec too") {
		testkit.Missing(t, "Landlock", o)
	}
	if o.code != 0 {
		t.Fatal(o)
	}
	notes := strings.Join(openArchive(t, path).health.Notes, "\n")
	if !strings.Contains(notes, "s4_file_policy") || strings.Contains(notes, "mechanism="+schemas.SourceFanotify) {
		t.Errorf("enforced otherwise than by the next mechanism:\n%s", notes)
	}
}

// TestKilledWhileAsked: an open that waits for the answer of a stopped runner-capture
// never succeeds, and nothing hangs, whichever of the two is killed.
func TestKilledWhileAsked(t *testing.T) {
	requireBPF(t)
	for _, victim := range []string{"runner-capture", "runner-exec"} {
		dir, policy := secret(t)
		c := command(t, "runner-exec", "--archive", dir+"/run.tar.gz", "--run-id", "asked-"+filepath.Base(dir), "--policy", policy, "--file-mechanism", schemas.SourceFanotify,
			"--", "sh", "-c", "touch started; while [ ! -e go ]; do sleep 0.01; done; cat secret/key >got; touch on; sleep 60")
		c.Dir = dir
		wait := start(t, c)
		testkit.Await(t, "the command", func() bool { return testkit.Exists(dir + "/started") })
		pids := children(c.Process.Pid)
		capture := pids["runner-capture"]
		testkit.Must(t, syscall.Kill(capture, syscall.SIGSTOP))
		testkit.Must(t, os.WriteFile(dir+"/go", nil, 0o644))
		testkit.Await(t, "the open", func() bool { return testkit.Exists(dir + "/got") })
		time.Sleep(100 * time.Millisecond)
		if victim == "runner-exec" {
			testkit.Must(t, syscall.Kill(c.Process.Pid, syscall.SIGKILL)) // the kernel lets runner-capture go on
		} else {
			testkit.Must(t, syscall.Kill(capture, syscall.SIGKILL))
		}
		wait()
		testkit.Await(t, "the end of the command", func() bool {
			found, _ := filepath.Glob("/sys/fs/cgroup/*/runner-asked-" + filepath.Base(dir))
			return len(found) == 0 && syscall.Kill(capture, 0) != nil
		})
		if b, err := os.ReadFile(dir + "/got"); err != nil || len(b) > 0 {
			t.Errorf("%s killed: the command read %q, %v", victim, b, err)
		}
		if testkit.Exists(dir + "/run.tar.gz") {
			t.Errorf("%s killed: there is an archive", victim)
		}
	}
}
