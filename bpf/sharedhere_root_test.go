//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// shareHere gives the test a BPF file system of its own, which must be as empty at its end. It is mounted nowhere: what runs beside
// the test, and looks for one, must not find it.
func shareHere(t *testing.T) string {
	t.Helper()
	fd, err := blankBPF()
	if err != nil {
		testkit.Missing(t, "shared probes", err)
	}
	dir := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
	find := bpfMount
	bpfMount = func() (string, error) { return dir, nil }
	t.Cleanup(func() {
		bpfMount = find
		left := slices.DeleteFunc(testkit.Names(t, dir), func(name string) bool { return strings.HasSuffix(name, ".debug") }) // the kernel's own
		for _, name := range left {
			filepath.WalkDir(filepath.Join(dir, name), func(path string, _ os.DirEntry, err error) error {
				t.Errorf("left on the BPF file system: %s %v", path, err)
				return nil
			})
		}
		testkit.Must(t, unix.Close(fd))
	})
	return dir
}

// blankBPF makes a BPF file system. It ends when nobody has it open.
func blankBPF() (int, error) {
	fs, err := unix.Fsopen("bpf", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
}
