package tool

import (
	"bufio"
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
		if a.Policy != unix.SCHED_IDLE {
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

// A child that was just started has the lowest priority, and all that it starts, until it is given the usual one again. Who may
// not give that leaves the child as it is.
func TestBackgroundChild(t *testing.T) {
	cmd := exec.Command("sh", "-c", "read go; cat /proc/self/stat; read go; cat /proc/self/stat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	own := ownPriority()
	idle := [2]string{"19", strconv.Itoa(unix.SCHED_IDLE)}
	first := [2]string{strconv.Itoa(int(own.Nice)), strconv.Itoa(int(own.Policy))}
	usual := first
	if own.Policy == unix.SCHED_NORMAL {
		usual[1] = strconv.Itoa(unix.SCHED_BATCH)
	}
	if !canRaise() {
		t.Log("this user cannot raise a priority")
		idle, usual = first, first
	}
	lines := bufio.NewScanner(out)
	for _, c := range []struct {
		set  func(int)
		want [2]string
	}{{BackgroundChild, idle}, {NormalChild, usual}} {
		c.set(cmd.Process.Pid)
		in.Write([]byte("go\n"))
		if !lines.Scan() {
			t.Fatal("the child said nothing")
		}
		_, rest, _ := strings.Cut(lines.Text(), ") ")
		if f := strings.Fields(rest); len(f) < 39 || [2]string{f[16], f[38]} != c.want {
			t.Errorf("nice and policy of a program that the child runs: %q, expected %q", f, c.want)
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
