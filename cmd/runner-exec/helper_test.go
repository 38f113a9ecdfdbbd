//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// bin is a directory with copies of the test binary under the names of the
// tools. A copy acts by its name: runner-exec is the real one, the other stages
// are small stand-ins that follow the real contracts, so that these tests find
// only faults of runner-exec.
var bin string

func TestMain(m *testing.M) {
	if act, ok := roles[strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")]; ok {
		act()
		os.Exit(0)
	}
	testkit.Heed()
	dir, err := os.MkdirTemp("", "runner-exec-test-")
	if err == nil {
		err = install(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	bin = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var roles = map[string]func(){
	"runner-exec":      func() { tool.Main(app()) },
	"runner-capture":   fakeCapture,
	"runner-normalize": fakeNormalize,
	"runner-correlate": fakeCorrelate,
	"runner-pack":      fakePack,
	"probe":            probe,
	keeperName:         keeper,
}

func install(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for name := range roles {
		if err := os.Link(self, filepath.Join(dir, name)); err == nil {
			continue
		}
		if err := copyFile(self, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o755)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// result is how one call of runner-exec ended.
type result struct {
	code           int
	stdout, stderr string
	dir            string // its working directory
}

func (r result) String() string {
	return fmt.Sprintf("exit %d\nstdout: %s\nstderr: %s", r.code, r.stdout, r.stderr)
}

// command prepares runner-exec in a fresh directory.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(filepath.Join(bin, "runner-exec"), args...)
	c.Dir = t.TempDir()
	c.Stdout, c.Stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return c
}

func outcome(t *testing.T, c *exec.Cmd, err error) result {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	r := result{code: c.ProcessState.ExitCode(), dir: c.Dir}
	if b, ok := c.Stdout.(*bytes.Buffer); ok {
		r.stdout = b.String()
	}
	if b, ok := c.Stderr.(*bytes.Buffer); ok {
		r.stderr = b.String()
	}
	return r
}

// call runs runner-exec with args to its end.
func call(t *testing.T, args ...string) result {
	t.Helper()
	c := command(t, args...)
	return outcome(t, c, c.Run())
}

// leftovers are the names in dir besides those given.
func leftovers(t *testing.T, dir string, known ...string) (rest []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
next:
	for _, e := range entries {
		for _, k := range known {
			if e.Name() == k {
				continue next
			}
		}
		rest = append(rest, e.Name())
	}
	return rest
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
