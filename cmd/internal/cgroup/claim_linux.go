package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// claimed is the attribute of a cgroup that belongs to a run. Its value is the run's id. Whoever
// observes the run also holds a lock on the cgroup's directory, as long as it lives.
const claimed = "user.runner-run"

// Claim marks a cgroup as that of a run, until the file is closed. Where the hierarchy has no
// such attributes (before Linux 5.7), only the lock is taken.
func Claim(dir, runID string) (*os.File, error) {
	d, err := Watch(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Fsetxattr(int(d.Fd()), claimed, []byte(runID), 0); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		d.Close()
		return nil, fmt.Errorf("marking the cgroup %s: %w", dir, err)
	}
	return d, nil
}

// Watch makes this process the only one that observes a cgroup, until the file is closed. Each has a process in the cgroup, for a moment, that
// tries whether its probes work: for another one that is a process of the cgroup, and its end can be the end of all of them.
func Watch(dir string) (*os.File, error) {
	d, err := Open(dir)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return d, nil
	}
	d.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("another process observes the cgroup %s, or has a lock (flock) on that directory: wait until it has ended", dir)
	}
	return nil, fmt.Errorf("locking the cgroup %s: %w", dir, err)
}

// Leftover is a cgroup whose run is not observed any more, and was cleared.
type Leftover struct {
	Dir, RunID string
	Killed     int // processes that were still running in it
	Err        error
}

// ClearLeftovers kills what runs in the cgroups of runs that were left in a parent cgroup, and
// removes them: those with the mark and without the lock. With an id, only those of it.
func ClearLeftovers(parent, id string) (list []Leftover) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if l, is := clearLeftover(filepath.Join(parent, e.Name()), id); is {
			list = append(list, l)
		}
	}
	return list
}

func clearLeftover(dir, only string) (l Leftover, is bool) {
	id := make([]byte, 256)
	n, err := unix.Lgetxattr(dir, claimed, id)
	if err != nil || only != "" && string(id[:n]) != only {
		return l, false
	}
	d, err := Open(dir)
	if err != nil {
		return l, false
	}
	defer d.Close()
	if unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return l, false
	}
	l = Leftover{Dir: dir, RunID: string(id[:n])}
	pids, err := Processes(dir)
	l.Killed = len(pids)
	if err == nil {
		err = Kill(dir, 10*time.Second)
	}
	if err == nil {
		err = Remove(dir)
	}
	if Exists(dir) == nil {
		l.Err = err
	}
	return l, true
}
