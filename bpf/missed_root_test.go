//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// script makes calls, processes and programs: the same ones each time.
const script = `for i in 1 2 3 4 5 6 7; do /bin/true; (: </no/such/file); : >/dev/null; done 2>/dev/null; /no/such/program; exec /bin/true`

// scripted attaches the probes with copies, takes away all copies of one probe, and runs
// the script.
func scripted(t *testing.T, without string) Stats {
	t.Helper()
	s, run := inOwnCgroup(t)
	defer s.Close() // or the next one has the same probes
	s.closeAll(t, without)
	testkit.Must(t, run(exec.Command("/bin/sh", "-c", script)))
	return whole(t, s)
}

// inOwnCgroup attaches the probes with copies to a cgroup in which run runs a command.
func inOwnCgroup(t *testing.T) (s *Session, run func(*exec.Cmd) error) {
	t.Helper()
	s, start := inCgroup(t, Options{Copies: CopiesOn})
	return s, func(cmd *exec.Cmd) error {
		if err := start(cmd); err != nil {
			return err
		}
		return cmd.Wait()
	}
}

// inCgroup attaches the probes to a cgroup in which start starts a command.
func inCgroup(t *testing.T, opt Options) (s *Session, start func(*exec.Cmd) error) {
	t.Helper()
	dir, err := os.MkdirTemp(ownCgroup(t), "runner-test-")
	testkit.Must(t, err)
	t.Cleanup(func() { os.Remove(dir) })
	opt.Cgroup, opt.RingSize = dir, 1<<20
	s, err = Attach(asTested(opt))
	if err != nil {
		testkit.Missing(t, "the probes", err)
	}
	t.Cleanup(s.Close)
	return s, func(cmd *exec.Cmd) error {
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer f.Close()
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
		return cmd.Start()
	}
}

// closeAll takes away all copies of a probe.
func (s *Session) closeAll(t *testing.T, probe string) {
	t.Helper()
	names := s.programNames()
	for i, p := range s.progs {
		if Probe(names[p]) == probe {
			s.closeLink(t, i)
		}
	}
}

// closeLink takes away a program, also one that is pinned.
func (s *Session) closeLink(t *testing.T, i int) {
	t.Helper()
	if s.set != nil {
		testkit.Must(t, s.links[i].Unpin())
	}
	testkit.Must(t, s.links[i].Close())
}

// whole are the statistics of a session that lost no record.
func whole(t *testing.T, s *Session) Stats {
	t.Helper()
	st, err := s.Stats()
	testkit.Must(t, err)
	if st.Seen != st.Emitted || st.ScratchMissing != 0 || st.CoveredMisses != 0 {
		t.Errorf("%+v", st)
	}
	return st
}

// A capture that ends while its processes go on closes the entries of calls before all others. What is
// then created was not missed.
func TestEndsWithoutEntries(t *testing.T) {
	s, run := inOwnCgroup(t)
	r, w, err := os.Pipe()
	testkit.Must(t, err)
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", "read line; (:); (:)")
	cmd.Stdin = r
	done := make(chan error)
	go func() { done <- run(cmd) }()
	time.Sleep(500 * time.Millisecond) // it waits in a call of which there is an entry, and no end
	s.closeAll(t, "sys_enter")
	w.Close()
	testkit.Must(t, <-done)
	if st := whole(t, s); len(st.Missed) != 0 {
		t.Errorf("missed %v", st.Missed)
	}
}

// waitsIn returns when a process is in a call, with that descriptor as its first argument.
func waitsIn(t *testing.T, pid int, call uint64, fd int32) {
	t.Helper()
	said := []byte(nil)
	for range 10_000 {
		said, _ = os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
		var number, first uint64
		if n, _ := fmt.Sscanf(string(said), "%d 0x%x", &number, &first); n == 2 && number == call && int32(first) == fd {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("the process is in %q, expected call %d of descriptor %d", said, call, fd)
}

// A call whose end no copy saw is counted at the task's next call, also if nothing is recorded of that one: the task may make no
// other before the capture ends.
func TestMissedIsSoonKnown(t *testing.T) {
	s, start := inCgroup(t, Options{Copies: CopiesOn})
	s.closeAll(t, "sys_exit")
	r, w, err := os.Pipe()
	testkit.Must(t, err)
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", "true </no/such/file; read line")
	cmd.Stdin = r
	testkit.Must(t, start(cmd))
	waitsIn(t, cmd.Process.Pid, unix.SYS_READ, 0) // the last call that it makes
	early := whole(t, s).Missed["sys_exit"]
	w.Close()
	cmd.Wait()
	if late := whole(t, s).Missed["sys_exit"]; early == 0 || early != late {
		t.Errorf("%d were missed, and %d when the task had ended", early, late)
	}
}

// Two calls with the same number, and others between them of which nothing is recorded: they are two, also if no copy saw the
// second one's entry, and the copies that saw the two ends are not the same.
func TestMissedEntryAfterOthers(t *testing.T) {
	s := attachOwn(t, true)
	names := s.programNames()
	var ends []int // by copy
	for i, p := range s.progs {
		if Probe(names[p]) == "sys_exit" {
			ends = append(ends, i)
		}
	}
	if len(ends) != probeCopies {
		t.Fatalf("%d copies", len(ends))
	}
	for _, i := range ends[1:] {
		s.closeLink(t, i)
	}
	const name = "/no/such/file/of-two"
	calls, done := make(chan bool), make(chan bool)
	go func() {
		runtime.LockOSThread()
		for range calls {
			unix.Unlinkat(unix.AT_FDCWD, name, 0)
			unix.Getppid()
			done <- true
		}
	}()
	calls <- true
	<-done
	s.closeAll(t, "sys_enter")
	s.closeLink(t, ends[0])
	testkit.Must(t, s.trace(s.progs[ends[1]]))
	calls <- true
	<-done
	close(calls)
	if got := outcomes(t, s, name); len(got) != 2 {
		t.Errorf("%q, expected two", got)
	}
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
