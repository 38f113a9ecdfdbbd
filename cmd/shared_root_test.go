//go:build linux

package cmd_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// mounts is a mount namespace with a BPF file system of its own: no other test shares probes with what runs there.
type mounts struct{ fd int }

func newMounts(t *testing.T) mounts {
	t.Helper()
	fd, err := -1, error(nil)
	inThread(func() {
		if err = unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return
		}
		if err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return
		}
		if err = unix.Mount("bpf", "/sys/fs/bpf", "bpf", 0, ""); err == nil {
			fd, err = unix.Open(fmt.Sprintf("/proc/self/task/%d/ns/mnt", unix.Gettid()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
	})
	if err != nil {
		testkit.Missing(t, "shared probes", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return mounts{fd}
}

// inThread runs f in a thread that ends with it.
func inThread(f func()) {
	done := make(chan bool)
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}

// do runs f there, with what it starts.
func (m mounts) do(t *testing.T, f func()) {
	t.Helper()
	here, err := os.Getwd()
	testkit.Must(t, err)
	inThread(func() {
		if err = unix.Unshare(unix.CLONE_FS); err == nil {
			err = unix.Setns(m.fd, unix.CLONE_NEWNS)
		}
		if err == nil {
			err = unix.Chdir(here)
		}
		if err == nil {
			f()
		}
	})
	testkit.Must(t, err)
}

// pins are the names on the BPF file system but for the kernel's own.
func (m mounts) pins(t *testing.T) (names []string) {
	t.Helper()
	m.do(t, func() {
		for _, name := range testkit.Names(t, "/sys/fs/bpf") {
			if !strings.HasSuffix(name, ".debug") {
				names = append(names, name)
			}
		}
	})
	return names
}

// waiting starts a measured run that waits for its input's end.
func (m mounts) waiting(t *testing.T, flags ...string) (exe *exec.Cmd, run *measured, end func() outcome) {
	t.Helper()
	c, run := measuring(t, flags, "sh", "-c", "echo here; exec cat")
	in, err := c.StdinPipe()
	testkit.Must(t, err)
	r, w, err := os.Pipe()
	testkit.Must(t, err)
	t.Cleanup(func() { r.Close() })
	c.Stdout = w
	m.do(t, func() { testkit.Must(t, c.Start()) })
	w.Close()
	t.Cleanup(func() { in.Close(); c.Process.Kill(); c.Wait() })
	line := make([]byte, 5)
	if n, _ := r.Read(line); string(line[:n]) != "here\n" {
		t.Fatalf("the run did not start: %q", line[:n])
	}
	return c, run, func() outcome {
		in.Close()
		c.Wait()
		return outcome{code: c.ProcessState.ExitCode()}
	}
}

// TestSharedKinds: with probes that several runs share, at the same time, each record has exactly what its command did.
func TestSharedKinds(t *testing.T) {
	requireBPF(t)
	m := newMounts(t)
	_, _, end := m.waiting(t, "--probes", "shared")
	if pins := m.pins(t); len(pins) != 1 {
		t.Errorf("pinned: %q", pins)
	}
	var wg sync.WaitGroup
	for _, group := range kindGroups {
		wg.Go(func() {
			m.do(t, func() { workload(t, []string{"--probes", "shared"}, "kinds", shortDir(t), group) })
		})
	}
	wg.Wait()
	if o := end(); o.code != 0 {
		t.Errorf("the run beside them: %v", o)
	}
	if pins := m.pins(t); len(pins) != 0 {
		t.Errorf("left: %q", pins)
	}
}

// TestSharedBytes: whose probes a run used makes no difference to its archive.
func TestSharedBytes(t *testing.T) {
	requireBPF(t)
	m := newMounts(t)
	var all [][]byte
	dir := shortDir(t)
	for _, probes := range []string{"own", "shared", "auto"} {
		_, _, end := m.waiting(t, "--probes", probes)
		m.do(t, func() {
			c, run := measuring(t, []string{"--run-id", "shared-bytes", "--probes", probes, "--canonical-pids"}, "sh", "-c", "ls / >/dev/null; mkdir x; rmdir x; true")
			c.Dir = dir
			if o := call(t, c); o.code != 0 {
				t.Errorf("%s: %v", probes, o)
			}
			all = append(all, testkit.Read(t, run.path))
		})
		end()
	}
	for i, b := range all {
		if !bytes.Equal(b, all[0]) {
			t.Errorf("archive %d differs", i)
		}
	}
}

// TestSharedBesideNested: a run inside of another one, which chooses nothing, leaves the probes that others share alone. What it does
// there is told in the run around it, and nowhere else.
func TestSharedBesideNested(t *testing.T) {
	requireBPF(t)
	m := newMounts(t)
	_, beside, end := m.waiting(t, "--probes", "shared")
	m.do(t, func() {
		around, run := record(t, []string{"--probes", "shared"}, tool("runner-exec"), "--archive", filepath.Join(shortDir(t), "inner.tar.gz"), "--", "true")
		if notes := around.health.Notes; !strings.Contains(fmt.Sprint(notes), "interference=bpf") {
			t.Errorf("around: %q, %v", notes, run.outcome)
		}
	})
	if o := end(); o.code != 0 {
		t.Fatal(o)
	}
	openArchive(t, beside.path).complete(t)
}

// TestSharedKilledTogether: runs that are killed leave probes behind. The next run that shares removes them, and so does
// runner-capture --unload.
func TestSharedKilledTogether(t *testing.T) {
	requireBPF(t)
	m := newMounts(t)
	for _, unload := range []bool{false, true} {
		for range 2 {
			c, _, _ := m.waiting(t, "--probes", "shared")
			killStages(t, c.Process.Pid)
			c.Wait()
		}
		if pins := m.pins(t); len(pins) != 1 {
			t.Fatalf("after a kill: %q", pins)
		}
		m.do(t, func() {
			if unload {
				if o := call(t, command(t, "runner-capture", "--unload")); o.code != 0 || !strings.Contains(o.stderr, "removed: 1") {
					t.Errorf("%v", o)
				}
				return
			}
			workload(t, []string{"--probes", "auto"}, "kinds", shortDir(t), kindGroups[0])
		})
		if pins := m.pins(t); len(pins) != 0 {
			t.Errorf("unload %v, left: %q", unload, pins)
		}
	}
	m.do(t, func() {
		if o := call(t, command(t, "runner-capture", "--unload")); o.code != 0 || !strings.Contains(o.stderr, "removed: 0") {
			t.Errorf("%v", o)
		}
	})
}

// TestSharedLoaded: probes that were loaded to be kept are those of every run, and no run removes them. The record is the same.
func TestSharedLoaded(t *testing.T) {
	requireBPF(t)
	m := newMounts(t)
	capture := func(want string, args ...string) {
		t.Helper()
		m.do(t, func() {
			if o := call(t, command(t, "runner-capture", args...)); o.code != 0 || !strings.Contains(o.stderr, want) {
				t.Errorf("%q: %v, expected %q", args, o, want)
			}
		})
	}
	capture("attached now", "--load")
	capture("attached before", "--load")
	for range 2 {
		m.do(t, func() { workload(t, nil, "kinds", shortDir(t), kindGroups[0]) })
		if pins := m.pins(t); len(pins) != 1 {
			t.Errorf("after a run: %q", pins)
		}
	}
	capture("removed: 1", "--unload")
	if pins := m.pins(t); len(pins) != 0 {
		t.Errorf("left: %q", pins)
	}
	if o := call(t, command(t, "runner-capture", "--load", "--unload")); o.code != 2 {
		t.Errorf("%v", o)
	}
}

// TestSharedStorm: runs that share probes start, work, end and are killed at the same time, each at a moment of its own. Those that
// are not killed have exactly what their commands did, and so has a run after all of them, which leaves nothing.
func TestSharedStorm(t *testing.T) {
	requireBPF(t)
	m := newMounts(t)
	const rounds, runs = 4, 12
	for round := range rounds {
		random := rand.New(rand.NewPCG(uint64(round), 1))
		var wg sync.WaitGroup
		for i := range runs {
			after, probes := time.Duration(random.IntN(400))*time.Millisecond, []string{"auto", "shared"}[random.IntN(2)]
			group := kindGroups[random.IntN(len(kindGroups))]
			wg.Go(func() {
				m.do(t, func() {
					if i%3 == 0 {
						workload(t, []string{"--probes", probes}, "kinds", shortDir(t), group)
						return
					}
					c, _ := measuring(t, []string{"--probes", probes}, "sleep", "1")
					testkit.Must(t, c.Start())
					time.Sleep(after)
					if i%3 == 1 {
						killStages(t, c.Process.Pid)
					} else {
						c.Process.Signal(unix.SIGTERM)
					}
					c.Wait()
				})
			})
		}
		wg.Wait()
		m.do(t, func() { workload(t, []string{"--probes", "shared"}, "kinds", shortDir(t), kindGroups[0]) })
		if pins := m.pins(t); len(pins) != 0 {
			t.Errorf("round %d, left: %q", round, pins)
		}
	}
}

// killStages kills runner-exec and its runner-capture at once.
func killStages(t *testing.T, pid int) {
	t.Helper()
	list := testkit.Read(t, fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	tasks := testkit.Names(t, fmt.Sprintf("/proc/%d/task", pid))
	for _, tid := range tasks {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, tid))
		list = append(append(list, ' '), b...)
	}
	unix.Kill(pid, unix.SIGSTOP)
	for _, child := range strings.Fields(string(list)) {
		var n int
		fmt.Sscan(child, &n)
		if name, _ := os.ReadFile("/proc/" + child + "/comm"); strings.HasPrefix(string(name), "runner-captur") {
			testkit.Must(t, unix.Kill(n, unix.SIGKILL))
		}
	}
	testkit.Must(t, unix.Kill(pid, unix.SIGKILL))
	time.Sleep(50 * time.Millisecond)
}

// TestSharedRefused: where probes cannot be shared, who asks for it is told before the command starts.
func TestSharedRefused(t *testing.T) {
	requireBPF(t)
	if mounted, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounted), " - bpf ") {
		testkit.Note(t, "no BPF file system", "one is mounted here")
	} else if m := measure(t, []string{"--probes", "shared"}, "touch", "made"); m.code != 4 || !strings.Contains(m.stderr, "mount -t bpf bpf /sys/fs/bpf") {
		t.Errorf("%v", m.outcome)
	}
	newMounts(t).do(t, func() {
		m := measure(t, []string{"--probes", "shared", "--without", "cast"}, "touch", "made")
		if m.code != 4 || !strings.Contains(m.stderr, "has probes of its own") || testkit.Exists("made") {
			t.Errorf("%v", m.outcome)
		}
	})
}
