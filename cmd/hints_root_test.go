//go:build linux

package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// smallDisk is a file system with so much space.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := shortDir(t)
	if err := unix.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		testkit.Missing(t, "mounts", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// Whether there is room for the archive, the scratch files and the recording is looked at before the
// command starts.
func TestRoomIsLookedAt(t *testing.T) {
	full, small, roomy := smallDisk(t, "2m"), smallDisk(t, "32m"), shortDir(t)
	for _, c := range []struct {
		name, archive, tmp string
		flags              []string
		code               int
		says               string
	}{
		{"the archive has no room", full, roomy, nil, 125, full + " is full: "},
		{"the scratch files have none", roomy, full, nil, 125, full + " is full: "},
		{"the recording has none", roomy, roomy, []string{"--spool-dir", filepath.Join(full, "spool")}, 125, "spool is full: "},
		{"little room", small, roomy, nil, 0, "warning: " + small + " has only "},
	} {
		marker := filepath.Join(shortDir(t), "ran")
		args := append(append([]string{"--no-kernel", "--archive", filepath.Join(c.archive, "run.tar.gz")}, c.flags...), "--", "touch", marker)
		p := command(t, "runner-exec", args...)
		p.Env = append(p.Env, "TMPDIR="+c.tmp)
		o := call(t, p)
		if o.code != c.code || !strings.Contains(o.stderr, c.says) || testkit.Exists(marker) != (c.code == 0) {
			t.Errorf("%s: the command ran: %v; %v", c.name, testkit.Exists(marker), o)
		}
		if c.code != 0 && (!strings.Contains(o.stderr, "hint: free some space") || testkit.Exists(filepath.Join(c.archive, "run.tar.gz"))) {
			t.Errorf("%s: %v", c.name, o)
		}
	}
}

// A user whose shell is in a cgroup of somebody else is told so first, whether or not another one is theirs.
func TestShellElsewhere(t *testing.T) {
	requireBPF(t)
	own, work, as := unprivileged(t)
	shell, theirs := newCgroup(t), delegated(t)
	for _, parent := range []string{"", theirs} {
		marker := filepath.Join(work, "ran")
		args := []string{"--archive", filepath.Join(work, "run.tar.gz")}
		if parent != "" {
			args = append(args, "--cgroup-parent", parent)
		}
		user := as(filepath.Join(own, "runner-exec"), append(args, "--", "touch", marker)...)
		c := inCgroup(t, shell, user)
		c.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		o := call(t, c)
		_, hint, _ := strings.Cut(o.stderr, "hint: ")
		if o.code != 4 || testkit.Exists(marker) || !strings.Contains(o.stderr, "this shell is in the cgroup ") || !strings.HasPrefix(hint, "start it in a cgroup that is yours: systemd-run") {
			t.Errorf("with --cgroup-parent %q: %v", parent, o)
		}
		if left, _ := os.ReadDir(theirs); len(left) > 0 {
			for _, e := range left {
				if strings.HasPrefix(e.Name(), "runner-") {
					t.Errorf("%s is left", e.Name())
				}
			}
		}
	}
}
