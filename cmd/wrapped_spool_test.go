//go:build linux

package cmd_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestWrappedSpool: with a recording on disk the archive has the same records of wrappers, and a recording that could not be finished has
// them too.
func TestWrappedSpool(t *testing.T) {
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	dir := t.TempDir()
	spool := filepath.Join(dir, "spool")
	run := func(flags ...string) map[string][]byte {
		file := filepath.Join(t.TempDir(), "run.tar.gz")
		cmd := command(t, "runner-exec", slices.Concat([]string{"--no-kernel", "--run-id", "r", "--replayable", "--archive", file}, flags, []string{"--", tool("runner-net"), "deny", "--", tool("runner-box"), "--", "sh", "-c", "cat; echo new >file; exit 3"})...)
		cmd.Stdin = strings.NewReader("typed in\n")
		if o := call(t, cmd); o.code != 3 || o.stdout != "typed in\n" {
			t.Fatal(o)
		}
		if o := call(t, command(t, "runner-verify", file)); o.code != 0 {
			t.Fatal(o)
		}
		return openArchive(t, file).members
	}
	plain, spooled := run(), run("--spool-dir", spool)
	for _, member := range []string{schemas.MemberRunEnv, schemas.MemberRunBox, schemas.MemberChanges, schemas.MemberStdout, schemas.BlobMember(schemas.DigestOf([]byte("typed in\n"))), schemas.BlobMember(schemas.DigestOf([]byte("new\n")))} {
		if len(plain[member]) == 0 || string(plain[member]) != string(spooled[member]) {
			t.Errorf("%s: %s\nand %s", member, plain[member], spooled[member])
		}
	}
	if testkit.Exists(spool) {
		t.Error("the recording is still there")
	}
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "out"), 0o755))
	file := filepath.Join(dir, "out", "run.tar.gz")
	o := call(t, command(t, "runner-exec", "--no-kernel", "--replayable", "--spool-dir", spool, "--archive", file, "--", tool("runner-clock"), "--seed", "5", "--", "rmdir", filepath.Join(dir, "out")))
	if o.code != 125 || !testkit.Exists(filepath.Join(spool, "records")) {
		t.Fatal(o)
	}
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "out"), 0o755))
	if o := call(t, command(t, "runner-exec", "--no-kernel", "--resume", spool, "--archive", file)); o.code != 0 {
		t.Fatal(o)
	}
	if a := openArchive(t, file).members; !strings.Contains(string(a[schemas.MemberRunClock]), `"seed":"5"`) || !strings.Contains(string(a[schemas.MemberRunEnv]), `"wrappers":["runner-clock"]`) {
		t.Errorf("%s %s", a[schemas.MemberRunClock], a[schemas.MemberRunEnv])
	}
}

// TestResumeLogs: a recording is finished with the sealed logs that it has. What a full disk leaves of one, and its bare lines, are none.
func TestResumeLogs(t *testing.T) {
	dir := t.TempDir()
	spool, out, policy := filepath.Join(dir, "spool"), filepath.Join(dir, "out"), filepath.Join(dir, "tools.yaml")
	testkit.Must(t, os.WriteFile(policy, []byte("schema: runner.policy.v0\ndefault: deny\n"), 0o644))
	testkit.Must(t, os.Mkdir(out, 0o755))
	file := filepath.Join(out, "run.tar.gz")
	o := call(t, command(t, "runner-exec", "--no-kernel", "--policy", policy, "--spool-dir", spool, "--archive", file, "--", "rmdir", out))
	log := filepath.Join(spool, "policy.log.ndjson")
	if o.code != 125 || !testkit.Exists(log) {
		t.Fatal(o)
	}
	testkit.Must(t, os.Mkdir(out, 0o755))
	sealed := testkit.Read(t, log)
	for _, b := range [][]byte{nil, []byte("{}\n"), sealed[:len(sealed)-1], sealed} {
		testkit.Must(t, os.WriteFile(log, b, 0o644))
		whole := len(b) == len(sealed)
		if o := call(t, command(t, "runner-exec", "--no-kernel", "--resume", spool, "--archive", file)); (o.code == 0) != whole || testkit.Exists(file) != whole || !whole && !strings.Contains(o.stderr, spool) {
			t.Errorf("%d bytes: %v", len(b), o)
		}
	}
}

// TestWrappedKilled: a runner-exec that is killed leaves none of its directories.
func TestWrappedKilled(t *testing.T) {
	if err := boxWorks(); err != nil {
		testkit.Missing(t, "boxes", err)
	}
	temp := shortDir(t)
	cmd := command(t, "runner-exec", "--no-kernel", "--replayable", "--policy-log", filepath.Join(t.TempDir(), "log"), "--archive", filepath.Join(t.TempDir(), "run.tar.gz"), "--", tool("runner-box"), "--", "sh", "-c", "echo; sleep 2")
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	r, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	_, err = r.Read(make([]byte, 1))
	testkit.Must(t, err)
	if list, err := os.ReadDir(temp); err != nil || len(list) < 2 {
		t.Fatal(list, err)
	}
	testkit.Must(t, cmd.Process.Kill())
	cmd.Wait()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		list, err := os.ReadDir(temp)
		testkit.Must(t, err)
		if len(list) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("still there: %v", list)
		}
	}
}

// TestBoxShowsLogs: the logs of a measured run can be written to in a box, as root and as somebody else, wherever they are; nothing else
// of their directory can be changed, and they are no change of the workspace.
func TestBoxShowsLogs(t *testing.T) {
	for _, c := range callers(t) {
		for _, where := range []string{"/tmp", "/var/tmp", "/dev/shm", "/mnt"} {
			temp, err := os.MkdirTemp(where, "logs-")
			testkit.Must(t, err)
			t.Cleanup(func() { os.RemoveAll(temp) })
			testkit.Must(t, os.Chown(temp, int(c.uid), int(c.uid)))
			out := c.dir(t)
			run := func(more ...string) outcome {
				cmd := c.box(t)
				args := slices.Concat([]string{tool("runner-exec"), "--no-kernel", "--policy-log", out + "/log", "--archive", out + "/run.tar.gz", "--", tool("runner-box")}, more,
					[]string{"--", "sh", "-c", `log=$ASSAY_RUNNER_POLICY_DECISION_LOG; echo said >>$log && ! rm -f $log && ! touch ${log%/*}/other && ! cat $log && touch mine`})
				cmd.Path, cmd.Args, cmd.Env = args[0], args, append(cmd.Env, "TMPDIR="+temp)
				return call(t, cmd)
			}
			if o := run(); o.code != 0 {
				t.Errorf("%s, %s: %v", c.name, where, o)
				continue
			}
			if log := string(testkit.Read(t, out+"/log")); !strings.Contains(log, `"line":"said"`) || strings.Contains(log, `"replaced":"yes"`) {
				t.Errorf("%s, %s: %s", c.name, where, log)
			}
			if changes := openArchive(t, out+"/run.tar.gz").members[schemas.MemberChanges]; strings.Count(string(changes), "\n") != 1 || !strings.Contains(string(changes), `"path":"mine"`) {
				t.Errorf("%s, %s: %s", c.name, where, changes)
			}
			if o := run("--workdir", temp); o.code != 125 || !strings.Contains(o.stderr, "TMPDIR=DIR") && !strings.Contains(o.stderr, "outside of /dev") {
				t.Errorf("%s, %s: the workspace over the logs: %v", c.name, where, o)
			}
		}
	}
}
