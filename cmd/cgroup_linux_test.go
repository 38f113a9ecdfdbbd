package cmd_test

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// until waits for a condition that must become true soon.
func until(t *testing.T, what string, true_ func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !true_(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 20 s for %s", what)
		}
	}
}

// reading stores the text of one member.
func reading(member string, into *string) func(string, io.Reader) error {
	return func(name string, r io.Reader) error {
		if name != member {
			return nil
		}
		b, err := io.ReadAll(r)
		*into = string(b)
		return err
	}
}

// cgroupRoot is where the cgroup2 file system is mounted, and ownCgroup where this
// process is in it.
func cgroupRoot(t *testing.T) string {
	t.Helper()
	root := ""
	eachLine(t, "/proc/self/mountinfo", func(l string) {
		before, after, _ := strings.Cut(l, " - ")
		if f := strings.Fields(before); strings.HasPrefix(after, "cgroup2 ") && len(f) > 4 && root == "" {
			root = f[4]
		}
	})
	if root == "" {
		testkit.Missing(t, "cgroups", fmt.Errorf("no cgroup2 mount"))
	}
	return root
}

func ownCgroup(t *testing.T) string {
	t.Helper()
	own := ""
	eachLine(t, "/proc/self/cgroup", func(l string) {
		if p, ok := strings.CutPrefix(l, "0::"); ok {
			own = p
		}
	})
	return filepath.Join(cgroupRoot(t), own)
}

func eachLine(t *testing.T, path string, f func(string)) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		f(s.Text())
	}
}

// newCgroup makes an empty cgroup and removes it with everything in it.
func newCgroup(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(ownCgroup(t), "runner-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
		for range 100 {
			all := cgroupsBelow(dir)
			for i := len(all) - 1; i >= 0; i-- {
				os.Remove(all[i])
			}
			if os.Remove(dir); !testkit.Exists(dir) {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("%s could not be removed", dir)
	})
	return dir
}

// cgroupsBelow lists the groups inside dir, parents first.
func cgroupsBelow(dir string) []string {
	var all []string
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && p != dir {
			all = append(all, p)
		}
		return nil
	})
	return all
}

// inCgroup makes a command start inside a cgroup.
func inCgroup(t *testing.T, dir string, c *exec.Cmd) *exec.Cmd {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	return c
}
