//go:build linux

package cmd_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestBareRootLeavesNothing: a bare root that is killed while it is made leaves no process, no
// mount and no folder. The program in the place of debootstrap mounts something and then waits.
func TestBareRootLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Missing(t, "a bare root that is killed", "needs root")
	}
	testkit.Programs(t, "a bare root that is killed", "unshare", "setsid", "mount")
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := shortDir(t)
			temp, shims, ready := filepath.Join(dir, "temp"), filepath.Join(dir, "shims"), filepath.Join(dir, "ready")
			testkit.Must(t, os.Mkdir(temp, 0o755))
			testkit.Must(t, os.Mkdir(shims, 0o755))
			write(t, filepath.Join(shims, "debootstrap"), "#!/bin/sh\nmount -t tmpfs none \"$4\" && echo >\"$4/file\" || exit 1\n"+
				"setsid sleep 600 &\necho $! >"+ready+".new && mv "+ready+".new "+ready+"\nwait\n")
			c := command(t, "sh", "../scripts/bare.sh")
			c.Env = append(os.Environ(), "PATH="+shims+":"+os.Getenv("PATH"), "TMPDIR="+temp, "DEBIAN_MIRROR=none", "ROOT=")
			testkit.Must(t, c.Start())
			until(t, "the root is made", func() bool { return testkit.Exists(ready) })
			if !heldByCleaner(t, temp) {
				t.Error("the cleaner does not hold the namespace: its number can become that of another one")
			}
			testkit.Must(t, c.Process.Signal(sig))
			if err := c.Wait(); err == nil {
				t.Error("it passed")
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(testkit.Read(t, ready))))
			testkit.Must(t, err)
			until(t, "its folder is gone", func() bool { return len(testkit.Names(t, temp)) == 0 })
			until(t, "its process is gone", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
			if mounts := testkit.Read(t, "/proc/self/mountinfo"); strings.Contains(string(mounts), dir) {
				t.Errorf("a mount is left:\n%s", mounts)
			}
		})
	}
}

// heldByCleaner reports whether a process that runs clean-root.sh has open each mount namespace that is noted below temp.
func heldByCleaner(t *testing.T, temp string) bool {
	notes, _ := filepath.Glob(temp + "/*/namespaces")
	if len(notes) != 1 {
		return false
	}
	held := map[string]bool{}
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		if line, _ := os.ReadFile(file); strings.Contains(string(line), "clean-root.sh\x00"+filepath.Dir(notes[0])) {
			open, _ := filepath.Glob(filepath.Dir(file) + "/fd/*")
			for _, fd := range open {
				to, _ := os.Readlink(fd)
				held[to] = true
			}
		}
	}
	noted := strings.Fields(string(testkit.Read(t, notes[0])))
	return len(noted) > 0 && !slices.ContainsFunc(noted, func(n string) bool { return !held[n] })
}
