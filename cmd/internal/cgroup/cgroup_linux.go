// Package cgroup finds, empties and removes cgroup v2 directories.
package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNoMount means that no cgroup v2 hierarchy is mounted here.
var ErrNoMount = errors.New("no cgroup v2 hierarchy is mounted")

// Own returns the directory of the calling process's own cgroup. The mount is read from
// mountinfo, because hybrid setups do not mount cgroup2 at the usual place. The position
// is read from /proc/self/cgroup and is relative to the mount's root.
func Own() (string, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	own := ""
	for line := range strings.Lines(string(b)) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			own = p
		}
	}
	if own == "" {
		return "", ErrNoMount
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		before, after, ok := strings.Cut(sc.Text(), " - ")
		head := strings.Fields(before)
		if !ok || len(head) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		root, point := Unoctal(head[3]), Unoctal(head[4])
		rel, err := filepath.Rel(root, own)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			continue
		}
		dir := filepath.Join(point, rel)
		if IsV2(dir) { // another mount may cover this one
			return dir, nil
		}
	}
	if err := sc.Err(); err != nil {
		return "", err
	}
	return "", ErrNoMount
}

// Unoctal undoes the \ooo escapes of mountinfo (proc(5)).
func Unoctal(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// IsV2 reports whether dir is on a cgroup2 mount.
func IsV2(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

// Populated reports whether the cgroup or one below it holds a process.
func Populated(dir string) (bool, error) {
	b, err := read(dir, "cgroup.events")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "populated "); ok {
			return strings.TrimSpace(v) == "1", nil
		}
	}
	return false, fmt.Errorf("%s/cgroup.events has no line populated", dir)
}

// Wait returns when the cgroup's populated state is want, or when ctx ends. The
// kernel reports a change as POLLPRI on cgroup.events.
func Wait(ctx context.Context, dir string, want bool) error {
	f, err := open(dir, "cgroup.events", unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, 256)
	for {
		// The file must be read after each notification to arm the next one.
		n, err := unix.Pread(int(f.Fd()), buf, 0)
		if err != nil {
			return fmt.Errorf("reading %s: %w", f.Name(), err)
		}
		if strings.Contains(string(buf[:n]), "populated 1") == want {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}
		if _, err := unix.Poll(fds, 100); err != nil && err != unix.EINTR {
			return err
		}
	}
}

// Killable returns an error for the root cgroup, which holds the whole machine, and for
// any cgroup that the caller itself is in.
func Killable(dir string) error {
	if err := Exists(dir); err != nil {
		return err
	}
	if _, err := read(dir, "cgroup.type"); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is the root of a cgroup hierarchy: it is not killed", dir)
	} else if err != nil {
		return err
	}
	pids, err := Processes(dir)
	if err != nil {
		return err
	}
	if slices.Contains(pids, os.Getpid()) {
		return fmt.Errorf("this process is in %s: it is not killed", dir)
	}
	return nil
}

// Kill kills every process in the cgroup and below (by cgroup.kill since Linux 5.14,
// else one by one) and waits until they have ended, at most limit.
func Kill(dir string, limit time.Duration) error {
	if err := kill(dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return Wait(ctx, dir, false)
}

func kill(dir string) error {
	if err := Killable(dir); err != nil {
		return err
	}
	err := write(dir, "cgroup.kill", "1")
	if errors.Is(err, fs.ErrNotExist) {
		if e := Exists(dir); e != nil {
			return e
		}
		return killEach(dir)
	}
	if errors.Is(err, unix.EOPNOTSUPP) { // somebody made it threaded: it has threads, of which each ends its process
		return killEach(dir)
	}
	return err
}

// killEach kills the processes one by one and repeats this until none is listed, because
// a process can fork after it was listed.
func killEach(dir string) error {
	for range 1000 {
		pids, err := Processes(dir)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, p := range pids {
			unix.Kill(p, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("processes in %s do not end", dir)
}

// Thaw lets the cgroup run again if it was frozen (cgroup.freeze, Linux 5.2).
func Thaw(dir string) error {
	return write(dir, "cgroup.freeze", "0")
}

// Processes lists the processes in the cgroup and below.
func Processes(dir string) ([]int, error) { return ids(dir, "cgroup.procs") }

// Threads lists the threads in the cgroup and below.
func Threads(dir string) ([]int, error) { return ids(dir, "cgroup.threads") }

func ids(dir, file string) ([]int, error) {
	var out []int
	err := walk(dir, func(d *os.File) error {
		b, err := readAt(d, file)
		if errors.Is(err, unix.EOPNOTSUPP) { // it is threaded: threads do as well
			b, err = readAt(d, "cgroup.threads")
		}
		for _, w := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(w); err == nil {
				out = append(out, n)
			}
		}
		return err
	}, nil)
	return out, err
}

// Remove removes the cgroup and the cgroups below it. All must be empty.
func Remove(dir string) error {
	err := walk(dir, nil, func(parent *os.File, name string) error {
		return patient(func() error { return unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR) })
	})
	if err == nil {
		err = patient(func() error { return rmdir(dir) })
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("removing cgroup %s: %w", dir, err)
}

// patient repeats a removal: a cgroup whose last process has just ended can be busy for a moment.
func patient(remove func() error) error {
	for try := 0; ; try++ {
		err := remove()
		if err == unix.ENOENT {
			return nil
		}
		if err != unix.EBUSY || try == 200 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}
