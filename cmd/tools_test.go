// Package cmd_test holds the tests of the tools together: pipelines, real runs on
// this kernel, and the rules of the repository.
package cmd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

var tools = []string{
	"runner-exec", "runner-capture", "runner-normalize", "runner-correlate", "runner-pack", "runner-verify",
	"runner-policy", "runner-show", "runner-attest", "runner-lint", "runner-diff", "runner-soak", "runner-otel",
	"runner-proc", "runner-suite", "runner-box", "runner-net", "runner-clock", "runner-replay", "runner-gate",
}

// wrappers are the tools that leave all exit codes but 125 to 127 to the command that they run.
var wrappers = []string{"runner-box", "runner-net", "runner-clock"}

// bin holds the tools and the workloads, built once for all tests of this package.
var bin string

func TestMain(m *testing.M) {
	testkit.Heed()
	code := 1
	defer func() { os.Exit(code) }()
	dir, err := os.MkdirTemp("", "runner-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err == nil {
		err = os.Chmod(dir, 0o755) // tests run tools as other users too
	}
	if err == nil {
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	bin = dir
	code = m.Run()
}

func build(dir string) error {
	if err := goBuild(dir, nil, "./cmd/..."); err != nil {
		return err
	}
	if err := goBuild(dir, nil, "./testdata/workload/listener", "./testdata/workload/mcp-client", "./testdata/workload/mcp-server"); err != nil || runtime.GOOS != "linux" {
		return err
	}
	if err := goBuild(dir, nil, "./testdata/workload/dials", "./testdata/workload/kinds", "./testdata/workload/shapes"); err != nil {
		return err
	}
	if runtime.GOARCH != "amd64" {
		return nil
	}
	return goBuild(dir, []string{"GOARCH=386"}, "./testdata/workload/compat32")
}

func goBuild(dir string, env []string, packages ...string) error {
	c := exec.Command("go", append([]string{"build", "-trimpath", "-o", dir + "/"}, packages...)...)
	c.Dir = ".."
	c.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("building %v: %w\n%s", packages, err, out)
	}
	return nil
}

// tool is the path of a built program.
func tool(name string) string { return filepath.Join(bin, name) }

// outcome is the exit code and the output of one process.
type outcome struct {
	code           int
	stdout, stderr string
}

func (o outcome) String() string {
	return fmt.Sprintf("exit %d\nstdout: %s\nstderr: %s", o.code, testkit.Clip(o.stdout), testkit.Clip(o.stderr))
}

// call runs a program to its end. A run that takes minutes hangs: it is killed, and the
// test fails.
func call(t *testing.T, c *exec.Cmd) outcome {
	t.Helper()
	return start(t, c)()
}

// start starts a program; the function that it returns waits for the end.
func start(t *testing.T, c *exec.Cmd) func() outcome {
	t.Helper()
	var out, errw bytes.Buffer
	if c.Stdout == nil {
		c.Stdout = &out
	}
	if c.Stderr == nil {
		c.Stderr = &errw
	}
	c.WaitDelay = 5 * time.Second
	if err := c.Start(); err != nil {
		t.Fatalf("%s: %v", strings.Join(c.Args, " "), err)
	}
	return func() outcome {
		t.Helper()
		err := c.Wait()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatalf("%s: %v\n%s", strings.Join(c.Args, " "), err, errw.String())
		}
		return outcome{c.ProcessState.ExitCode(), out.String(), errw.String()}
	}
}

// command is a program that is killed, and its test failed, if it takes minutes: it hangs.
func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	return commandFor(t, 3*time.Minute, name, args...)
}

// commandFor is a command that may take so long. The machine can be busy: it is for what hangs.
func commandFor(t *testing.T, limit time.Duration, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	if !strings.Contains(name, "/") {
		if p := tool(name); testkit.Exists(p) {
			name = p
		}
	}
	c := exec.CommandContext(ctx, name, args...)
	c.Cancel = func() error {
		if ctx.Err() == context.DeadlineExceeded { // else the test has ended
			t.Errorf("%s is killed: it did not end in %v", strings.Join(c.Args, " "), limit)
		}
		return c.Process.Kill()
	}
	c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	return c
}

// shortDir is an empty directory with a short, symlink-free name: unix sockets
// have 108 bytes for their path.
func shortDir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("/tmp", "r")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	if err := os.Chmod(d, 0o755); err != nil {
		t.Fatal(err)
	}
	if d, err = filepath.EvalSymlinks(d); err != nil {
		t.Fatal(err)
	}
	return d
}

// probe asks runner-capture whether it can observe here.
var probe = sync.OnceValue(func() error {
	if os.Getenv("RUNNER_REQUIRE_BPF") == "" && os.Geteuid() != 0 {
		return errors.New("needs root: run sudo make test")
	}
	out, err := exec.Command(tool("runner-capture"), "--probe").CombinedOutput()
	if err != nil {
		return fmt.Errorf("runner-capture --probe: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
})

// requireBPF skips a test if this kernel cannot be observed, and fails it if
// RUNNER_REQUIRE_BPF=1 says that it must be.
func requireBPF(t *testing.T) {
	t.Helper()
	if err := probe(); err != nil {
		testkit.Missing(t, "kernel capture", err)
	}
}
