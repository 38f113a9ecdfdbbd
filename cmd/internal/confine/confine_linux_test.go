package confine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// statuses are the values of a key of all threads of this process.
func statuses(t *testing.T, key string) (values []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/status")
	testkit.Must(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // a thread that has ended
		}
		testkit.Must(t, err)
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, key+":"); ok {
				values = append(values, strings.TrimSpace(v))
			}
		}
	}
	return values
}

// run runs a shell command under c and returns its output.
func run(t *testing.T, c *Confinement, text string) string {
	t.Helper()
	testkit.Must(t, c.Check())
	var out []byte
	err := c.Start(func() (err error) {
		out, err = exec.Command("/bin/sh", "-c", text+" 2>&1; true").Output()
		return err
	})
	testkit.Must(t, err)
	return string(out)
}

// TestOnlyTheProgramIsConfined: the program has what was asked for, and no thread of
// the tool, not even one that is made later, has any of it.
func TestOnlyTheProgramIsConfined(t *testing.T) {
	for range 20 {
		out := run(t, &Confinement{Harden: true}, "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status")
		if want := "NoNewPrivs:\t1\nSeccomp:\t2\n"; out != want {
			t.Fatalf("%q, expected %q", out, want)
		}
	}
	ready, end := make(chan bool), make(chan bool)
	for range 8 {
		go func() {
			runtime.LockOSThread()
			ready <- true
			<-end
		}()
	}
	for range 8 {
		<-ready
	}
	for _, key := range []string{"NoNewPrivs", "Seccomp"} {
		testkit.Await(t, "only threads with "+key+" 0", func() bool { // those that were confined end
			return !slices.ContainsFunc(statuses(t, key), func(v string) bool { return v != "0" })
		})
	}
	close(end)
	if out := run(t, &Confinement{NoNewPrivs: true}, "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status"); out != "NoNewPrivs:\t1\nSeccomp:\t0\n" {
		t.Errorf("%q", out)
	}
}

// TestNotOnTheMainThread: f never runs on the thread whose names /proc shows for the
// process, whichever thread the caller is on.
func TestNotOnTheMainThread(t *testing.T) {
	for range 200 {
		testkit.Must(t, OnThread(func() error {
			if unix.Gettid() == unix.Getpid() {
				return errors.New("this is the main thread")
			}
			return nil
		}))
	}
}

// TestDomain: where Landlock is there, a hardened program does not reach processes
// outside; an ordinary one does.
func TestDomain(t *testing.T) {
	c := &Confinement{Harden: true}
	testkit.Must(t, c.Check())
	for _, p := range []struct{ name, text string }{
		{schemas.ConfinedDomain, "readlink /proc/$PPID/root && echo reached"},
		{schemas.ConfinedSignals, "kill -0 $PPID && echo reached"},
	} {
		t.Run(p.name, func(t *testing.T) {
			if !slices.Contains(c.InForce(), p.name) {
				testkit.Missing(t, p.name, "this kernel does not have it")
			}
			if out := run(t, c, p.text); strings.Contains(out, "reached") {
				t.Errorf("%q", out)
			}
			if out := run(t, &Confinement{}, p.text); !strings.Contains(out, "reached") {
				t.Errorf("without a confinement: %q", out)
			}
		})
	}
	dir := t.TempDir()
	if out := run(t, c, "cd "+dir+" && mkdir a b && echo 1 >a/x && mv a/x b/x && ln b/x a/x && cat a/x"); out != "1\n" {
		t.Errorf("moves between directories do not work: %q", out)
	}
}
