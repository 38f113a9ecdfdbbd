package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sweep ends and reaps the processes that became ours because their parents have ended. There must be no process of
// ours that somebody waits for.
func sweep() {
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		switch pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil); {
		case err == unix.EINTR, pid > 0:
			continue
		case err != nil:
			return // there are none
		}
		for _, pid := range children() {
			unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond)
	}
}

// sweepBut is sweep, with processes of ours that stay.
func sweepBut(stays func(pid int) bool) {
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		left := false
		for _, pid := range children() {
			if !stays(pid) {
				left = true
				unix.Kill(pid, unix.SIGKILL)
				unix.Wait4(pid, nil, unix.WNOHANG|unix.WALL, nil)
			}
		}
		if !left {
			return
		}
	}
}

// children are the processes whose parent is this one.
func children() (pids []int) {
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%s/children", t.Name()))
		for _, s := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(s); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}
