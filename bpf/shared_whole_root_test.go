//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// Whose probes a session uses makes no difference to any other test of this package: all of them run once more with shared ones,
// in a mount namespace with a BPF file system.
func TestWholeShared(t *testing.T) { wholeShared(t, "^TestShared") }

// Nor does it make one to them, nor to those of shared probes, whether these have copies.
func TestWholeSharedWithCopies(t *testing.T) { wholeShared(t, "^$", testCopies+"=on") }

func wholeShared(t *testing.T, skip string, env ...string) {
	t.Helper()
	if os.Getenv(testProbes) != "" {
		return // this is one of them
	}
	testkit.Programs(t, "tests with shared probes", "unshare", "mount")
	shareHere(t) // can they be shared here at all?
	shareWith(t, newScope(t, ownCgroup(t)), Options{}).Close()
	cmd := exec.Command("unshare", "--mount", "sh", "-c", `mount -t bpf bpf /sys/fs/bpf && exec "$@"`, "sh", testExecutable(t), "-test.v", "-test.count=1", "-test.skip", skip)
	cmd.Env = append(append(os.Environ(), testProbes+"="+schemas.ProbesShared), env...)
	out, err := cmd.CombinedOutput()
	passed := len(regexp.MustCompile(`(?m)^--- PASS`).FindAll(out, -1))
	if err != nil || passed < 50 {
		for _, line := range bytes.Split(out, []byte("\n")) {
			if bytes.Contains(line, []byte("_test.go:")) || bytes.HasPrefix(bytes.TrimSpace(line), []byte("--- FAIL")) {
				t.Logf("%s", line)
			}
		}
		t.Errorf("%d tests passed: %v", passed, err)
	}
	t.Logf("%d tests passed with shared probes", passed)
}

// testProbes says whose probes the sessions of the tests use, and testCopies that sets have copies of them.
const (
	testProbes = "RUNNER_TEST_PROBES"
	testCopies = "RUNNER_TEST_COPIES"
)

func testExecutable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	testkit.Must(t, err)
	return path
}
