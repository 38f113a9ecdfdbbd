//go:build linux

package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// who prints who runs: user, group, all groups, home.
var who = []string{"sh", "-c", "id -u; id -g; id -G; echo $HOME"}

// TestUser: the command runs as the user of --user, or as the one who called sudo.
func TestUser(t *testing.T) {
	requireBPF(t)
	if os.Geteuid() != 0 {
		testkit.Missing(t, "the command as another user", "needs root")
	}
	sudo := []string{"SUDO_UID=65534", "SUDO_GID=65534", "SUDO_USER=nobody"}
	none := []string{"SUDO_UID=", "HOME=/root"}
	for _, c := range []struct {
		name  string
		env   []string
		flags []string
		want  string
	}{
		{"as root", none, nil, "0 0 * /root"},
		{"by name", none, []string{"--user", "nobody"}, "65534 65534 65534 /nonexistent"},
		{"by number", none, []string{"--user", "65534"}, "65534 65534 65534 /nonexistent"},
		{"with a group", none, []string{"--user", "65534:7"}, "65534 7 7 /nonexistent"},
		{"without an entry", none, []string{"--user", "4242:4343"}, "4242 4343 4343 /root"},
		{"hardened", none, []string{"--user", "nobody", "--harden"}, "65534 65534 65534 /nonexistent"},
		{"no new rights", none, []string{"--user", "nobody", "--no-new-privs"}, "65534 65534 65534 /nonexistent"},
		{"without capture", none, []string{"--user", "nobody", "--no-kernel"}, "65534 65534 65534 /nonexistent"},
		{"called by sudo", sudo, nil, "65534 65534 65534 /nonexistent"},
		{"called by sudo for root", append(sudo, "HOME=/root"), []string{"--user", "root"}, "0 0 * /root"},
		{"called by sudo for somebody else", append(sudo, "HOME=/root"), []string{"--user", "4242:4343"}, "4242 4343 4343 /root"},
		{"called by root's sudo", []string{"SUDO_UID=0", "SUDO_GID=0", "HOME=/root"}, nil, "0 0 * /root"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd, m := measuring(t, c.flags, who...)
			keep := filepath.Join(m.dir, "kept")
			cmd.Args = append([]string{cmd.Args[0], "--keep", keep}, cmd.Args[1:]...)
			cmd.Env = append(cmd.Env, c.env...)
			m.outcome = call(t, cmd)
			have := strings.Split(strings.TrimSpace(m.stdout), "\n")
			if len(have) == 4 && strings.Contains(c.want, "*") {
				have[2] = "*"
			}
			if m.code != 0 || strings.Join(have, " ") != c.want {
				t.Fatalf("%q, expected %q: %v", have, c.want, m.outcome)
			}
			openArchive(t, m.path)
			owner := uint32(0) // who called sudo, whatever --user says
			if c.env[0] == sudo[0] {
				owner = 65534
			}
			for _, path := range []string{m.path, keep, filepath.Join(keep, "1-raw.ndjson"), filepath.Join(keep, "3-joined.ndjson")} {
				st, err := os.Stat(path)
				testkit.Must(t, err)
				if have := st.Sys().(*syscall.Stat_t).Uid; have != owner {
					t.Errorf("%s belongs to %d, expected %d", path, have, owner)
				}
			}
		})
	}
}

// TestUserLogs: the command of another user writes to the collected logs, and the record of
// its run is as complete as that of root.
func TestUserLogs(t *testing.T) {
	requireBPF(t)
	if os.Geteuid() != 0 {
		testkit.Missing(t, "the logs of another user's command", "needs root")
	}
	line := `{"schema":"assay.runner.sdk_event.v0","run_id":"'$ASSAY_RUNNER_RUN_ID'","seq":0,"event_type":"run_started","source":"script"}`
	a, _ := record(t, []string{"--user", "nobody", "--agent-shim", "openai-agents"}, "sh", "-c", `echo '`+line+`' >>"$ASSAY_RUNNER_SDK_EVENT_LOG"`)
	a.complete(t)
}

// TestUserPlaces: directories that root makes for the user who called sudo belong to this user.
func TestUserPlaces(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Missing(t, "what sudo makes for its caller", "needs root")
	}
	dir := shortDir(t)
	testkit.Must(t, os.Chown(dir, nobody, nobody))
	sudo := func(argv ...string) outcome {
		c := command(t, "runner-exec", append([]string{"--no-kernel", "--spool-dir", "spool/run", "--"}, argv...)...)
		c.Dir, c.Env = dir, append(c.Env, "SUDO_UID=65534", "SUDO_GID=65534", "RUNNER_ARCHIVE_DIR=archives/mine")
		return call(t, c)
	}
	if o := sudo("rm", "-r", "archives"); o.code != 125 {
		t.Fatal(o)
	}
	for _, path := range []string{"spool", "spool/run", "spool/run/1-raw.ndjson"} {
		st, err := os.Stat(filepath.Join(dir, path))
		testkit.Must(t, err)
		if have := st.Sys().(*syscall.Stat_t).Uid; have != nobody {
			t.Errorf("%s belongs to %d", path, have)
		}
	}
	c := command(t, "runner-exec", "--resume", "spool/run", "--no-kernel", "--archive", "run.tar.gz")
	c.Dir, c.SysProcAttr = dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if o := call(t, c); o.code != 0 {
		t.Errorf("the user who called sudo cannot finish the recording: %v", o)
	}
}

// TestUserRefused: what --user cannot mean is refused before anything runs.
func TestUserRefused(t *testing.T) {
	for value, code := range map[string]int{
		"": 2, "no-such-user": 2, "4242": 2, "nobody:users": 2, "4294967295:0": 2, "0:4294967295": 2, "-1:0": 2, "1:2:3": 2, ":5": 2,
	} {
		m := measure(t, []string{"--user=" + value}, "touch", "ran")
		if m.code != code || !strings.Contains(m.stderr, "--user") || testkit.Exists(m.path) {
			t.Errorf("--user=%q: %v", value, m.outcome)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	own, work, as := shortDir(t), shortDir(t), &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	testkit.Must(t, os.Chown(work, nobody, nobody))
	for user, code := range map[string]int{"root": 4, "nobody": 0} {
		c := exec.Command(tool("runner-exec"), "--no-kernel", "--user", user, "--", "true")
		c.Dir, c.SysProcAttr, c.Env = work, as, []string{"PATH=" + bin + ":/usr/bin:/bin", "TMPDIR=" + work}
		if o := call(t, c); o.code != code || code != 0 && !strings.Contains(o.stderr, "hint: sudo") {
			t.Errorf("nobody with --user %s in %s: %v", user, own, o)
		}
	}
}
