//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// Probes that are loaded to be kept outlive the runs that use them, also where the set was damaged and is made anew. Loading again
// keeps those of this build alone. Unload removes them.
func TestSharedKept(t *testing.T) {
	dir := shareHere(t)
	load := func(want bool) {
		t.Helper()
		if before, err := Load(); before != want || err != nil {
			t.Fatalf("attached before: %v, expected %v; %v", before, want, err)
		}
	}
	run := func() {
		t.Helper()
		cgroup := newScope(t, ownCgroup(t))
		s := shareWith(t, cgroup, Options{})
		runIn(t, cgroup, openMany, "/nothing/kept", "10")
		if got := all(t, s); got.opens["/nothing/kept"] != 10 {
			t.Errorf("opens: %v", got.opens)
		}
		s.Close()
	}
	at := filepath.Join(dir, shareName, ObjectsDigest())
	load(false)
	load(true)
	run()
	is, err := os.Stat(at)
	testkit.Must(t, err)
	pins, err := filepath.Glob(filepath.Join(at, pinLink+"*"))
	testkit.Must(t, err)
	testkit.Must(t, os.Remove(pins[0]))
	run()
	if now, err := os.Stat(at); err != nil || os.SameFile(is, now) {
		t.Errorf("a damaged set is still there, or none is: %v", err)
	}
	load(true)
	testkit.Must(t, os.Remove(pins[0]))
	load(false)
	other := filepath.Join(dir, shareName, "0123456789abcdef")
	testkit.Must(t, os.Rename(at, other))
	load(false)
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("the set of another build is kept: %v", err)
	}
	if n, err := Unload(); n != 1 || err != nil {
		t.Errorf("%d sets removed: %v", n, err)
	}
	cgroup := newScope(t, ownCgroup(t))
	shareWith(t, cgroup, Options{}).Close()
	if _, err := os.Stat(at); !os.IsNotExist(err) {
		t.Errorf("a set that was not loaded to be kept is there after its last run: %v", err)
	}
}
