//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// The runner still finds the command's cgroup after a mount over the cgroup hierarchy.
func TestHold(t *testing.T) {
	parent, err := Own()
	if err != nil {
		testkit.Skip(t, "a cgroup that is mounted over", err)
	}
	dir := filepath.Join(parent, fmt.Sprintf("runner-test-hold-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		testkit.Missing(t, "a cgroup that is mounted over", err)
	}
	defer os.Remove(dir)
	at, held, err := Hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with its mount namespace
		done <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
				return err
			}
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return err
			}
			if err := unix.Mount("none", parent, "tmpfs", 0, ""); err != nil {
				return err
			}
			if _, err := os.Stat(dir); err == nil {
				return fmt.Errorf("%s is still visible: nothing was tested", dir)
			}
			if _, err := Populated(at); err != nil {
				return err
			}
			if err := Kill(at, 0); err != nil {
				return err
			}
			return Remove(at)
		}()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s was not removed: %v", dir, err)
	}
}
