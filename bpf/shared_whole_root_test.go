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
func TestWholeShared(t *testing.T) {
	if os.Getenv(testProbes) != "" {
		return // this is one of them
	}
	testkit.Programs(t, "tests with shared probes", "unshare", "mount")
	shareHere(t) // can they be shared here at all?
	shareWith(t, newScope(t, ownCgroup(t)), Options{}).Close()
	cmd := exec.Command("unshare", "--mount", "sh", "-c", `mount -t bpf bpf /sys/fs/bpf && exec "$@"`, "sh", testExecutable(t), "-test.v", "-test.count=1", "-test.skip", "^TestShared")
	cmd.Env = append(os.Environ(), testProbes+"="+schemas.ProbesShared)
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

// testProbes says whose probes the sessions of the tests use.
const testProbes = "RUNNER_TEST_PROBES"

func testExecutable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	testkit.Must(t, err)
	return path
}
