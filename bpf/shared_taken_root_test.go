//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// Everybody may make directories on a BPF file system. Somebody else's keeps nobody from sharing while it is empty.
// Who is not root makes none.
func TestSharedTaken(t *testing.T) {
	dir := shareHere(t)
	at := filepath.Join(dir, shareName)
	testkit.Must(t, os.Mkdir(at, 0o700))
	testkit.Must(t, os.Chown(at, 65534, 65534))
	shareWith(t, newScope(t, ownCgroup(t)), Options{}).Close()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		if _, _, no := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); no != 0 {
			done <- no
			return
		}
		_, err := Load()
		done <- err
	}()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "only root") {
		t.Errorf("who is not root was told: %v", err)
	}
	if _, err := os.Stat(at); !os.IsNotExist(err) {
		t.Errorf("and left a directory: %v", err)
	}
}
