package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestInferredNames: what a failed call's name says about the reason. A name that leads through
// what a process has open says nothing, whether or not the process is still there: the answer
// must not depend on time, nor on what this process has open.
func TestInferredNames(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	testkit.Must(t, err)
	secret := dir + "/secret"
	testkit.Must(t, os.Mkdir(secret, 0o755))
	testkit.Must(t, os.WriteFile(secret+"/key", nil, 0o644))
	testkit.Must(t, os.Symlink(secret, dir+"/link"))
	testkit.Must(t, os.Symlink("/proc/self/cwd", dir+"/cwd"))
	f, err := os.Open(secret + "/key")
	testkit.Must(t, err)
	defer f.Close()
	t.Chdir(secret)
	rules := &schemas.FileRules{FilesDefault: schemas.DecisionAllow, ExecDefault: schemas.DecisionAllow,
		Rules: []schemas.FileRule{{Number: 1, ID: "no", Action: schemas.DecisionDeny, Path: schemas.Text(secret), On: []string{schemas.HookRead}}}}
	const pid, tid = 1234567, 1234568
	key := secret + "/key"
	for _, c := range []struct{ base, user, want string }{
		{"/", key, key}, {dir, "secret/key", key}, {dir, "link/key", key}, {dir, "link/none", secret + "/none"}, {secret, "", secret},
		{"/", dir + "/free", ""}, {dir, "secrets", ""},
		{"/", "/proc/self/root" + key, key}, {"/", "/proc/thread-self/root" + key, key}, {"/", "/proc/self/root/proc/self/root" + dir + "/link/key", key},
		{"/", fmt.Sprintf("/proc/%d/root%s", pid, key), key}, {"/", fmt.Sprintf("/proc/%d/task/%d/root%s", pid, tid, key), key},
		{"/", fmt.Sprintf("/proc/%d/root%s", pid+1, key), ""}, {"/", fmt.Sprintf("/proc/%d/root%s", os.Getpid(), key), ""}, {dir, "proc/self/root" + key, ""},
		{"/", fmt.Sprintf("/proc/self/fd/%d", f.Fd()), ""}, {"/", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()), ""},
		{"/", "/proc/self/cwd/key", ""}, {"/", "/proc/thread-self/cwd/key", ""}, {dir, "cwd/key", ""}, {"/", "/dev/stdin", ""},
	} {
		g := &fileGuard{rules: rules, mechanism: schemas.SourceLandlock, errnos: landlockErrnos, counts: map[uint32]uint64{}}
		e := schemas.RawEvent{Op: schemas.OpOpenat, PID: pid, TID: tid, Has: schemas.HasRet, Ret: -int64(unix.EACCES), Base: []byte(c.base), UserPath: []byte(c.user)}
		got, ok := g.inferred(&e)
		if ok != (c.want != "") || string(got.UserPath) != schemas.Text(c.want) || ok && (got.Rule != 1 || got.Hook != schemas.HookRead) {
			t.Errorf("%s from %s: %v %s, expected %s", c.user, c.base, ok, got.UserPath, c.want)
		}
	}
}
