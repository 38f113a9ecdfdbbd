//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// watchedRun is what a measured run took at most.
type watchedRun struct {
	disk int64            // bytes that its nameless files took at once
	rss  map[string]int64 // bytes, by stage
}

// watched measures a workload, and looks at the files and the memory of the stages while it runs.
func (b *bench) watched(argv ...string) (*watchedRun, error) {
	os.Remove(b.archive())
	c := exec.Command(b.tool("runner-exec"), append([]string{"-q", "--run-id", "bench", "--archive", b.archive(), "--", b.self, workloadArg}, argv...)...)
	c.Dir = b.dir
	if err := c.Start(); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	u := &watchedRun{rss: map[string]int64{}}
	for {
		select {
		case err := <-done:
			if err != nil {
				err = fmt.Errorf("runner-exec: %w", err)
			}
			return u, err
		case <-time.After(b.look()):
			seen, sum := map[uint64]bool{}, int64(0)
			for _, pid := range append(children(c.Process.Pid), c.Process.Pid) {
				name, n := highWater(pid)
				u.rss[name] = max(u.rss[name], n)
				sum += nameless(pid, seen)
			}
			u.disk = max(u.disk, sum)
		}
	}
}

// nameless is the room of the files without a name that a process has open, in bytes. seen has the inodes that were counted.
func nameless(pid int, seen map[uint64]bool) (sum int64) {
	list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, name := range list {
		var st syscall.Stat_t
		if syscall.Stat(name, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFREG && st.Nlink == 0 && !seen[st.Ino] {
			seen[st.Ino] = true
			sum += st.Blocks * 512
		}
	}
	return sum
}
