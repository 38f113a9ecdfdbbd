//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// Who removes a set can be killed at any moment. A run never joins what is left: it records all, with another set, and the run that
// used what was there records all too. What the killed one left is gone in the end.
func TestSharedDamaged(t *testing.T) {
	dir := shareHere(t)
	at := filepath.Join(dir, shareName, ObjectsDigest())
	remove := func(prefix string) {
		for _, name := range testkit.Names(t, at) {
			if strings.HasPrefix(name, prefix) {
				testkit.Must(t, os.Remove(filepath.Join(at, name)))
			}
		}
	}
	for _, damage := range []func(){
		func() { remove(pinLink + objects.KernelProgOnSysExit) },
		func() { remove(pinLink) },
		func() { remove(pinProgram) },
		func() { remove(pinMap + factsMap) },
		func() { remove("") },
		func() { testkit.Must(t, os.Rename(at, at+oldSet)) },
	} {
		a, b := newScope(t, ownCgroup(t)), newScope(t, ownCgroup(t))
		first := shareWith(t, a, Options{})
		damage()
		second := shareWith(t, b, Options{})
		runIn(t, b, openMany, "/nothing/b", "10")
		runIn(t, a, openMany, "/nothing/a", "10")
		if got := all(t, first); got.opens["/nothing/a"] != 10 || got.opens["/nothing/b"] != 0 {
			t.Errorf("the first run: %v", got.opens)
		}
		first.Close()
		if _, err := os.Stat(at); err != nil {
			t.Errorf("the first run removed the set of the second: %v", err)
		}
		runIn(t, b, openMany, "/nothing/b", "10")
		if got := all(t, second); got.opens["/nothing/b"] != 20 || got.opens["/nothing/a"] != 0 {
			t.Errorf("the second run: %v", got.opens)
		}
		second.Close()
	}
}

// A set that cannot be opened, as on a file system that is read-only by now, is no reason to end: who chose nothing has its own probes.
func TestSharedNotOpened(t *testing.T) {
	dir := shareHere(t)
	first := shareWith(t, newScope(t, ownCgroup(t)), Options{})
	t.Cleanup(func() { first.Close(); Unload() })
	at := filepath.Join(dir, shareName, ObjectsDigest(), pinLink+objects.KernelProgOnSysExit)
	testkit.Must(t, os.Remove(at))
	testkit.Must(t, first.member.alive.Pin(at)) // no link
	if s, err := Attach(Options{Cgroup: newScope(t, ownCgroup(t)), RingSize: 1 << 16, Probes: ProbesShared}); !errors.As(err, new(*SharedProbesError)) {
		t.Errorf("%v, %v", s, err)
	}
	b := newScope(t, ownCgroup(t))
	second, err := Attach(Options{Cgroup: b, RingSize: 1 << 20, Probes: ProbesAuto})
	testkit.Must(t, err)
	t.Cleanup(second.Close)
	runIn(t, b, openMany, "/nothing/b", "10")
	if got := all(t, second); second.Shares() || got.opens["/nothing/b"] != 10 {
		t.Errorf("shares %v: %v", second.Shares(), got.opens)
	}
}

// What somebody left who was killed while a set was made, of this build or of another one, is gone after the next start.
func TestSharedSwept(t *testing.T) {
	dir := shareHere(t)
	for _, name := range []string{ObjectsDigest() + newSet, "other" + newSet, "other" + oldSet} {
		testkit.Must(t, os.MkdirAll(filepath.Join(dir, shareName, name), 0o700))
	}
	s, err := Attach(Options{Cgroup: newScope(t, ownCgroup(t)), RingSize: 1 << 16, Probes: ProbesAuto})
	testkit.Must(t, err)
	s.Close()
}

// Who waits for the lock while the last one removes the directory has no lock with what it waited for: it takes that of the new one.
func TestSharedLockOfNothing(t *testing.T) {
	shareHere(t)
	first, err := lockShare(time.Second)
	testkit.Must(t, err)
	waiting, err := openShare()
	testkit.Must(t, err)
	first.unlock()
	second, err := lockShare(time.Second)
	testkit.Must(t, err)
	if err := unix.Flock(int(waiting.dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil || waiting.there() {
		t.Errorf("the removed directory passes for the one that is there: %v", err)
	}
	waiting.close()
	if sh, err := lockShare(20 * time.Millisecond); err == nil {
		t.Error("two have the lock")
		sh.close()
	}
	second.unlock()
}

// Cgroups that something is mounted over cannot be found by their names: a run around them does not share.
func TestSharedMountedOver(t *testing.T) {
	shareHere(t)
	dir := newScope(t, ownCgroup(t))
	testkit.Must(t, os.MkdirAll(dir+"/over/hidden", 0o755))
	for what, mount := range map[string]func() error{
		"another file system": func() error { return unix.Mount("none", dir+"/over", "tmpfs", 0, "") },
		"another cgroup":      func() error { return unix.Mount(ownCgroup(t), dir+"/over", "", unix.MS_BIND, "") },
	} {
		testkit.Must(t, mount())
		s, err := Attach(Options{Cgroup: dir, RingSize: 1 << 16, Probes: ProbesShared})
		testkit.Must(t, unix.Unmount(dir+"/over", unix.MNT_DETACH))
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "mounted over") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
