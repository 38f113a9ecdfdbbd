//go:build unix

package scratch

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

const helperName = "RUNNER_SCRATCH_HELPER"

// TestMain is also the program that makes a directory and waits to be killed.
func TestMain(m *testing.M) {
	if place := os.Getenv(helperName); place != "" {
		d, err := In(place, "runner-test")
		if name := os.Getenv(helperName + "_AT"); name != "" {
			d, err = At(filepath.Join(place, name), 0o755)
		}
		if err == nil {
			err = errors.Join(os.MkdirAll(d.Path+"/deep/er", 0o700), os.WriteFile(d.Path+"/deep/er/file", []byte("x"), 0o600), os.Symlink("/", d.Path+"/link"), os.Chmod(d.Path+"/deep", 0))
		}
		if err != nil {
			os.Stdout.WriteString("error: " + err.Error() + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString(d.Path + "\n")
		os.Stdin.Read(make([]byte, 1))
		return
	}
	testkit.Heed()
	os.Exit(m.Run())
}

// started starts that program; kill ends it by SIGKILL.
func started(t *testing.T, place, at string) (path string, kill func()) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), helperName+"="+place, helperName+"_AT="+at)
	in, err := c.StdinPipe()
	testkit.Must(t, err)
	out, err := c.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, c.Start())
	path, err = bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.HasPrefix(path, "error") {
		t.Fatal(path, err)
	}
	kill = sync.OnceFunc(func() {
		c.Process.Kill()
		c.Wait()
		in.Close()
	})
	t.Cleanup(kill)
	return strings.TrimSpace(path), kill
}

// TestSwept: what a killed process left goes with the next start. What a live one has stays, and so does all that is not of this kind.
func TestSwept(t *testing.T) {
	place := t.TempDir()
	for _, other := range []string{"runner-test.tmp.x1", "runner-test.tmp.", "runner-test-123", "other.tmp.1", "xrunner-test.tmp.1", "runner-test.tmp.1x"} {
		testkit.Must(t, os.Mkdir(filepath.Join(place, other), 0o700))
	}
	outside := filepath.Join(t.TempDir(), "outside")
	testkit.Must(t, os.Mkdir(outside, 0o700))
	testkit.Must(t, os.WriteFile(outside+"/file", nil, 0o600))
	testkit.Must(t, os.Symlink(outside, filepath.Join(place, "runner-test.tmp.2")))
	testkit.Must(t, os.WriteFile(filepath.Join(place, "runner-test.tmp.3"), []byte("a file"), 0o600))
	before := testkit.Names(t, place)

	live, kill := started(t, place, "")
	dead, killed := started(t, place, "")
	killed()
	d, err := In(place, "runner-test")
	testkit.Must(t, err)
	if testkit.Exists(dead) || !testkit.Exists(live+"/deep") || d.Path == live {
		t.Errorf("%s is there: %t, %s: %t", dead, testkit.Exists(dead), live, testkit.Exists(live))
	}
	kill()
	testkit.Must(t, d.Remove())
	d, err = In(place, "runner-test")
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(d.Path+"/file", nil, 0))
	testkit.Must(t, d.Remove())
	if after := testkit.Names(t, place); strings.Join(after, " ") != strings.Join(before, " ") || !testkit.Exists(outside+"/file") {
		t.Errorf("there are %q, expected %q", after, before)
	}
}

// TestAt: a name is taken while its maker lives, and free after that.
func TestAt(t *testing.T) {
	place := t.TempDir()
	path, kill := started(t, place, "name")
	if _, err := At(path, 0o755); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	kill()
	d, err := At(path, 0o755)
	testkit.Must(t, err)
	if names := testkit.Names(t, path); len(names) > 0 {
		t.Errorf("it has %q", names)
	}
	testkit.Must(t, d.Remove())
	testkit.Must(t, os.WriteFile(path, nil, 0o600))
	if _, err := At(path, 0o755); !errors.Is(err, fs.ErrExist) || !testkit.Exists(path) {
		t.Error(err)
	}
}

// TestSweptWhileMade: who sweeps between the making of a directory and its lock takes it for a dead one. Its maker makes another one.
func TestSweptWhileMade(t *testing.T) {
	place, n := t.TempDir(), 0
	afterMake = func(path string) {
		if n++; n < 4 {
			Sweep(place, regexp.MustCompile(`tmp`))
			if testkit.Exists(path) {
				t.Errorf("%s was not swept", path)
			}
		}
	}
	defer func() { afterMake = func(string) {} }()
	d, err := In(place, "runner-test")
	testkit.Must(t, err)
	if n != 4 || !testkit.Exists(d.Path) {
		t.Errorf("%d were made, the last is there: %t", n, testkit.Exists(d.Path))
	}
	n = 0
	at, err := At(filepath.Join(place, "tmp"), 0o700)
	if testkit.Must(t, err); n != 4 {
		t.Errorf("%d were made", n)
	}
	testkit.Must(t, errors.Join(at.Remove(), d.Remove()))
}

// TestReplacedWhileSwept: what somebody puts under the name of a dead directory is not removed.
func TestReplacedWhileSwept(t *testing.T) {
	place := t.TempDir()
	dead, kill := started(t, place, "")
	kill()
	f, err := openDir(dead)
	testkit.Must(t, err)
	defer f.Close()
	testkit.Must(t, os.Rename(dead, place+"/moved"))
	testkit.Must(t, os.Mkdir(dead, 0o700))
	testkit.Must(t, os.WriteFile(dead+"/theirs", nil, 0o600))
	if err := wipe(dead, f); err == nil || !testkit.Exists(dead+"/theirs") || !testkit.Exists(place+"/moved/link") {
		t.Error(err)
	}
}

// TestOthers: a directory of somebody else stays, where others can make names.
func TestOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Skip(t, "directories of others", "they need root")
	}
	place := t.TempDir()
	path := filepath.Join(place, "runner-test.tmp.7")
	testkit.Must(t, os.Mkdir(path, 0o700))
	testkit.Must(t, os.Chown(path, 4321, 4321))
	testkit.Must(t, os.Chmod(place, 0o1777))
	if Sweep(place, regexp.MustCompile(`tmp`)); !testkit.Exists(path) {
		t.Error("it is gone")
	}
	testkit.Must(t, os.Chmod(place, 0o755)) // nobody else can have made it here
	if Sweep(place, regexp.MustCompile(`tmp`)); testkit.Exists(path) {
		t.Error("it is there")
	}
}

// TestMany: starts and sweeps at the same time do not take anything from each other.
func TestMany(t *testing.T) {
	place := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 40 {
				d, err := In(place, "runner-test")
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(os.WriteFile(d.Path+"/file", nil, 0o600), d.Remove()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if names := testkit.Names(t, place); len(names) > 0 {
		t.Errorf("there are %q", names)
	}
}
