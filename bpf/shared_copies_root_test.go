//go:build linux && (amd64 || arm64)

package bpf

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// withCopies lets the sets of a test have copies.
func withCopies(t *testing.T) {
	t.Helper()
	before := copiesOfSets
	copiesOfSets = CopiesOn
	t.Cleanup(func() { copiesOfSets = before })
}

// All copies are there, and each run knows what no copy saw of its own events.
func TestSharedCopiesMiss(t *testing.T) {
	withCopies(t)
	shareHere(t)
	a, b := newScope(t, ownCgroup(t)), newScope(t, ownCgroup(t))
	s, other := shareWith(t, a, Options{}), shareWith(t, b, Options{})
	copies := map[string]int{}
	for _, p := range s.progs {
		copies[s.programNames()[p]]++
	}
	for program, want := range map[string]int{objects.KernelProgOnSysEnter: smallCopies, objects.KernelProgOnSysExit: probeCopies,
		objects.KernelProgOnExec: probeCopies, objects.GuardProgOnSignal: smallCopies, objects.KernelProgOnMove: 1} {
		if copies[program] != want {
			t.Errorf("%s: %d copies, expected %d", program, copies[program], want)
		}
	}
	if s.Redundant != RedundantOn || other.Redundant != RedundantOn {
		t.Errorf("redundant %q and %q", s.Redundant, other.Redundant)
	}
	for name, l := range s.set.links { // a link is gone when nobody has it
		if programOfCopy(name) == objects.KernelProgOnSysExit {
			testkit.Must(t, l.Unpin())
			testkit.Must(t, l.Close())
			testkit.Must(t, other.set.links[name].Close())
		}
	}
	runIn(t, a, openMany, "/no/such/file", "20")
	st, err := s.Stats()
	testkit.Must(t, err)
	none, err := other.Stats()
	testkit.Must(t, err)
	if st.Missed["sys_exit"] < 20 || len(none.Missed) != 0 {
		t.Errorf("missed %v, and %v in the other run", st.Missed, none.Missed)
	}
}

// missedOfAll is what was missed of all runs, of those that have ended too.
func missedOfAll(t *testing.T, set *probeSet) (n uint64) {
	t.Helper()
	for key := range uint32(256 * slots) {
		var rows []objects.KernelSharedCounters
		testkit.Must(t, set.maps[objects.KernelMapCounters].Lookup(key, &rows))
		for _, c := range rows {
			n += c.Missed
		}
	}
	return n
}

// A task that stays when its run has ended is in a call that nobody sees the end of. That is not missed, in no run, when another
// one comes to its cgroup.
func TestSharedCopiesOfAnotherRun(t *testing.T) {
	withCopies(t)
	shareHere(t)
	a := newScope(t, ownCgroup(t))
	other := shareWith(t, newScope(t, ownCgroup(t)), Options{})
	fifo := filepath.Join(t.TempDir(), "fifo")
	testkit.Must(t, unix.Mkfifo(fifo, 0o600))
	first := shareWith(t, a, Options{})
	cmd := inScope(t, a, "sh", "-c", `exec 3<"$1"; read line; true </no/such/file`, "sh", fifo)
	in, err := cmd.StdinPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	waitsIn(t, cmd.Process.Pid, unix.SYS_OPENAT, unix.AT_FDCWD) // its open of the fifo
	testkit.Must(t, first.Quiet())
	first.Close()
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	testkit.Must(t, err)
	w.Close()
	waitsIn(t, cmd.Process.Pid, unix.SYS_READ, 0) // and now for a line
	second := shareWith(t, a, Options{})
	before := missedOfAll(t, other.set)
	_, err = io.WriteString(in, "go\n")
	testkit.Must(t, err)
	cmd.Wait()
	got := all(t, second)
	if n := missedOfAll(t, other.set) - before; n != 0 || got.opens["/no/such/file"] != 1 {
		t.Errorf("%d were missed, opens %v", n, got.opens)
	}
}
