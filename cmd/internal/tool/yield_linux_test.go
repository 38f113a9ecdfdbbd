package tool

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestBackground looks at every thread of a child process, because the settings
// cannot be taken back without privilege.
func TestBackground(t *testing.T) {
	if os.Getenv("RUNNER_TEST_BACKGROUND") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestBackground$", "-test.v")
		cmd.Env = append(os.Environ(), "RUNNER_TEST_BACKGROUND=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	Background()
	dir, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dir {
		tid, _ := strconv.Atoi(d.Name())
		a, err := unix.SchedGetAttr(tid, 0)
		if err != nil {
			continue
		}
		if a.Policy != schedIdle {
			t.Errorf("thread %d has policy %d, expected SCHED_IDLE", tid, a.Policy)
		}
		stat, err := os.ReadFile("/proc/self/task/" + d.Name() + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); f[16] != "19" {
			t.Errorf("thread %d has nice %s, expected 19", tid, f[16])
		}
	}
}
