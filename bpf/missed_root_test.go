//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// script makes calls, processes and programs: the same ones each time.
const script = `for i in 1 2 3 4 5 6 7; do /bin/true; (: </no/such/file); : >/dev/null; done 2>/dev/null; /no/such/program; exec /bin/true`

// scripted attaches the probes with copies, takes away all copies of one probe, and runs
// the script.
func scripted(t *testing.T, without string) Stats {
	t.Helper()
	dir := filepath.Join(ownCgroup(t), t.Name())
	testkit.Must(t, os.Mkdir(dir, 0o755))
	defer os.Remove(dir)
	s, err := Attach(Options{Cgroup: dir, RingSize: 1 << 20, Copies: CopiesOn})
	if err != nil {
		testkit.Missing(t, "the probes", err)
	}
	defer s.Close()
	names := s.programNames()
	for i, p := range s.progs {
		if Probe(names[p]) == without {
			testkit.Must(t, s.links[i].Close())
		}
	}
	f, err := os.Open(dir)
	testkit.Must(t, err)
	defer f.Close()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	st, err := s.Stats()
	testkit.Must(t, err)
	if st.Seen != st.Emitted || st.ScratchMissing != 0 || st.CoveredMisses != 0 {
		t.Errorf("%+v", st)
	}
	return st
}

// If no copy of a probe runs, the others know how many of its events were missed. An exec
// that failed is one that may have been missed, if only its entry was seen.
func TestMissedByProbe(t *testing.T) {
	whole := scripted(t, "")
	if whole.Lost != 0 || len(whole.Missed) != 0 {
		t.Errorf("missed %v with all copies", whole.Missed)
	}
	for _, probe := range []string{"exec", "fork", "sys_exit"} {
		st := scripted(t, probe)
		records := st.Lost
		if probe == "exec" {
			records *= 2 // the loader of a program is a record of the same probe
		}
		if st.Missed[probe] == 0 || st.Emitted+records != whole.Emitted {
			t.Errorf("without %s: %d recorded of %d, missed %v", probe, st.Emitted, whole.Emitted, st.Missed)
		}
	}
}

// A task that makes a process while the probes are attached is in a call whose beginning
// nothing saw: that is no event that was missed.
func TestAttachedWhileTasksFork(t *testing.T) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					testkit.Must(t, exec.Command("/bin/true").Run())
				}
			}
		})
	}
	defer wg.Wait()
	defer close(stop)
	for range 10 {
		s := attachOwn(t, true)
		st, err := s.Stats()
		testkit.Must(t, err)
		if st.Lost != 0 || len(st.Missed) != 0 {
			t.Errorf("missed %v of processes that were made before", st.Missed)
		}
		s.Close()
	}
}
