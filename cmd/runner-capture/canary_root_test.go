//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// The second canary must come through after survivors were killed, also when they
// left the cgroup frozen: otherwise a record in which nothing is missing reads as
// partial.
func TestCanaryAfterKill(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		t.Run(map[bool]string{false: "running", true: "frozen"}[frozen], func(t *testing.T) {
			dir := needKernel(t)
			control, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			s := start(t, control, "--cgroup", dir, "--supervised", "--remove-cgroup", "--grace", "1ms")
			var cmd *exec.Cmd
			s.ready(func() {
				fmt.Fprintln(w, `{"schema":"runner.control.v0","op":"started","command":["x"],"agent_shim":"none","env_keys":[],"inherited_fds":0}`)
				cmd = inCgroup(t, dir, "sleep", "")
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if frozen {
					if err := os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte("1"), 0); err != nil {
						t.Fatal(err)
					}
				}
				fmt.Fprintln(w, `{"schema":"runner.control.v0","op":"finished","exit_code":0,"signal":null}`)
				go cmd.Wait()
			})
			_, h, status := s.result()
			if h.Facts["canary_after"] != "seen" || h.Counters["survivors_killed"] == 0 || status != schemas.StatusComplete {
				t.Errorf("canary_after %s, %d survivors killed, status %s; %s",
					h.Facts["canary_after"], h.Counters["survivors_killed"], status, s.errs.String())
			}
		})
	}
}

// groupCanary makes a test its own process group's victim: see TestCanaryAmongSignals.
const groupCanary = "RUNNER_TEST_GROUP_CANARY"

// A signal for the whole process group, as timeout and a terminal send it, ends the capture, but not the canary that
// the capture starts then: a record in which nothing is missing would read as partial.
func TestCanaryAmongSignals(t *testing.T) {
	if dir := os.Getenv(groupCanary); dir != "" {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
		go func() {
			for { // a canary that is started at any time meets some of them
				for _, s := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT} {
					unix.Kill(0, s)
				}
				time.Sleep(2 * time.Millisecond)
			}
		}()
		for i := range 100 {
			if end := runCanary(dir, canaryPath("test", "again")); end.err != nil {
				t.Fatalf("canary %d: %v", i, end.err)
			}
		}
		return
	}
	dir := needKernel(t)
	c := exec.Command(os.Args[0], "-test.run=^TestCanaryAmongSignals$", "-test.v")
	c.Env = append(os.Environ(), groupCanary+"="+dir)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
