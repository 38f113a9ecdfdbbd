package child

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestMain is also a tool that is killed while its program runs.
func TestMain(m *testing.M) {
	if os.Getenv("CHILD_TEST_AS") == "parent" {
		p, err := Start(Options{Program: "/bin/sleep", Args: []string{"sleep", "60"}, OwnGroup: true, DieWithUs: true})
		if err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString(strconv.Itoa(p.PID()) + "\n")
		p.Wait()
		os.Exit(0)
	}
	testkit.Heed()
	os.Exit(m.Run())
}

func script(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	testkit.Must(t, os.WriteFile(name, []byte(text), mode))
	testkit.Must(t, os.Chmod(name, mode))
	return name
}

// Look finds what a shell would run, and its error has the exit code of a shell.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, d := range []string{"denied", "good", "good/folder", "here"} {
		testkit.Must(t, os.Mkdir(d, 0o755))
	}
	script(t, "denied/both", "#!/bin/sh\n", 0o644)
	script(t, "good/both", "#!/bin/sh\n", 0o755)
	script(t, "denied/only", "#!/bin/sh\n", 0o644)
	script(t, "local", "#!/bin/sh\n", 0o755)
	for _, c := range []struct {
		path, name, want string
		code             int
	}{
		{"denied:good", "both", "good/both", 0},
		{"denied:good", "only", "", tool.ExitCannotRun},
		{"denied:good", "neither", "", tool.ExitNotFound},
		{"good", "folder", "", tool.ExitCannotRun},
		{"good", "", "", tool.ExitNotFound},
		{"good", "local", "", tool.ExitNotFound},
		{"good:", "local", "./local", 0},
		{"", "local", "./local", 0},
		{"", "./local", "./local", 0},
		{"", "denied/only", "", tool.ExitCannotRun},
		{"", "good/none", "", tool.ExitNotFound},
		{"", "local/none", "", tool.ExitNotFound},
		{"", "good/folder", "", tool.ExitCannotRun},
	} {
		t.Setenv("PATH", c.path)
		got, err := Look(c.name)
		var f *Failure
		if code := 0; got != c.want || (err == nil) != (c.code == 0) || err != nil && (!errors.As(err, &f) || f.Code != c.code) {
			t.Errorf("PATH %q, %q: %q, %v, code %d", c.path, c.name, got, err, code)
		}
	}
	testkit.Must(t, os.Unsetenv("PATH"))
	if got, err := Look("sh"); err != nil || !strings.HasSuffix(got, "bin/sh") {
		t.Errorf("without PATH: %q, %v", got, err)
	}
}

// A start that fails has the code of its reason and one sentence.
func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		file string
		code int
		say  string
	}{
		{script(t, dir+"/interpreter", "#!/no/such/interpreter\n", 0o755), tool.ExitNotFound, "x: command not found: the file exists, but the interpreter that it names does not; nothing was run"},
		{dir + "/none", tool.ExitNotFound, "x: command not found; nothing was run"},
		{script(t, dir+"/denied", "#!/bin/sh\n", 0o644), tool.ExitCannotRun, "x: cannot run: permission denied; nothing was run"},
		{dir, tool.ExitCannotRun, "x: cannot run: permission denied; nothing was run"},
	} {
		_, err := Start(Options{Name: "x", Program: c.file, Args: []string{c.file}})
		var e *tool.Error
		if err == nil || !errors.As(Refusal(err, "nothing was run"), &e) || e.Code != c.code || e.Error() != c.say {
			t.Errorf("%s: %v, %+v", c.file, err, e)
		}
	}
	_, err := Start(Options{Name: "x", Program: "/bin/true", Args: []string{"true"}, Cgroup: dir + "/none"})
	var f *Failure
	if !errors.As(err, &f) || f.Code != tool.ExitOwn || !strings.Contains(err.Error(), "opening the cgroup") {
		t.Errorf("without its cgroup: %v", err)
	}
	if !errors.As(Refusal(io.EOF, "so"), new(*tool.Error)) {
		t.Error("another error has no exit code")
	}
}

// Endings are reported as a shell reports them.
func TestEndings(t *testing.T) {
	for text, want := range map[string]struct {
		status int
		say    string
	}{
		"exit 0":        {0, "ended with exit status 0"},
		"exit 3":        {3, "ended with exit status 3"},
		"kill -9 $$":    {137, "was killed by signal 9 (killed)"},
		"kill -TERM $$": {143, "was killed by signal 15 (terminated)"},
		"kill -PIPE $$": {141, "was killed by signal 13 (broken pipe)"},
	} {
		p, err := Start(Options{Name: "sh", Program: "/bin/sh", Args: []string{"sh", "-c", text}})
		testkit.Must(t, err)
		p.AwaitExit()
		e := p.Wait()
		if again := p.Wait(); e.Status() != want.status || e.String() != want.say || again != e || e.BrokenPipe() != (want.status == 141) {
			t.Errorf("%s: %d, %s", text, e.Status(), e)
		}
	}
	if e := (Ending{Err: io.EOF}); e.Status() != tool.ExitOwn || e.String() != "EOF" {
		t.Errorf("%d, %s", e.Status(), e)
	}
}

// A script without "#!" is run by the shell, as by execvp, with its arguments.
func TestScriptWithoutInterpreter(t *testing.T) {
	r, w, err := os.Pipe()
	testkit.Must(t, err)
	file := script(t, filepath.Join(t.TempDir(), "s"), "echo \"$1\" \"$SET\"; exit 4\n", 0o755)
	p, err := Start(Options{Name: "s", Program: file, Args: []string{"s", "a b"}, Env: []string{"SET=yes"}, Files: []*os.File{nil, w, nil}})
	testkit.Must(t, err)
	w.Close()
	out, _ := io.ReadAll(r)
	if e := p.Wait(); e.Status() != 4 || string(out) != "a b yes\n" {
		t.Errorf("%s, %q", e, out)
	}
}

// Kill also ends the processes that the program started, if it has its own group.
func TestGroup(t *testing.T) {
	r, w, err := os.Pipe()
	testkit.Must(t, err)
	p, err := Start(Options{Name: "sh", Program: "/bin/sh", Args: []string{"sh", "-c", "sleep 60 & trap '' TERM; echo on; wait; wait"},
		Env: os.Environ(), Files: []*os.File{nil, w, nil}, OwnGroup: true})
	testkit.Must(t, err)
	w.Close()
	testkit.Must(t, second(r.Read(make([]byte, 3))))
	p.Terminate() // ends the sleep, and not the shell
	if e := p.Reap(); e.Signal != 9 && e.Status() != 0 {
		t.Error(e)
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) != 0 { // ends when nobody has the pipe
		t.Errorf("%q, %v", rest, err)
	}
}

func second(_ int, err error) error { return err }

// The program does not outlive the tool, even if the tool is killed.
func TestDieWithUs(t *testing.T) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "CHILD_TEST_AS=parent")
	out, err := c.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, c.Start())
	b := make([]byte, 32)
	n, err := out.Read(b)
	testkit.Must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	testkit.Must(t, err)
	testkit.Must(t, c.Process.Kill())
	c.Wait()
	testkit.Await(t, "the end of the program", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

// A tool gets the signals that it watches, except those that were ignored before.
func TestSignals(t *testing.T) {
	for name, c := range map[string]struct {
		watch func() *Signals
		want  []syscall.Signal
	}{
		"all":    {WatchAll, []syscall.Signal{syscall.SIGUSR1, syscall.SIGTERM, syscall.Signal(40)}},
		"ending": {WatchEnding, []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP}},
	} {
		s := c.watch()
		s.All()
		for _, sig := range append(c.want, syscall.SIGPIPE) {
			testkit.Must(t, syscall.Kill(os.Getpid(), sig))
		}
		for range c.want {
			select {
			case sig := <-s.C:
				if n, ok := sig.(syscall.Signal); !ok || n == syscall.SIGPIPE {
					t.Errorf("%s: %v arrived", name, sig)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: a signal is lost", name)
			}
		}
		s.Stop()
	}
	for sig, n := range map[os.Signal]int{syscall.SIGTERM: 15, syscall.SIGINT: 2, syscall.SIGHUP: 1, syscall.SIGQUIT: 3, syscall.SIGUSR1: 0, syscall.SIGWINCH: 0} {
		if AsksToEnd(sig) != n {
			t.Errorf("%v: %d", sig, AsksToEnd(sig))
		}
	}
}

// The environment is passed on unchanged, including two entries with the same name.
func TestEnviron(t *testing.T) {
	if os.Getenv("CHILD_TEST_TWICE") == "" {
		p, err := Start(Options{Name: "test", Program: os.Args[0], Args: []string{os.Args[0], "-test.run=^TestEnviron$"},
			Env: append(os.Environ(), "CHILD_TEST_TWICE=1", "CHILD_TEST_TWICE=2")})
		testkit.Must(t, err)
		if e := p.Wait(); e.Status() != 0 {
			t.Error(e)
		}
		return
	}
	if got := strings.Join(Environ(), "\n") + "\n"; !strings.Contains(got, "CHILD_TEST_TWICE=1\nCHILD_TEST_TWICE=2\n") {
		os.Exit(1)
	}
}
