package tool

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// openNameless opens a file without a name in dir (O_TMPFILE, Linux 3.11).
func openNameless(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), dir+"/(nameless)"), nil
}

// linkNameless gives a file without a name one. A command that was run can have covered /proc: then the descriptor itself is asked,
// which needs CAP_DAC_READ_SEARCH, or Linux 6.10 and the rights that it was opened with (linkat(2), AT_EMPTY_PATH).
func linkNameless(f *os.File, path string) error {
	err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	if err == nil || hasProc() {
		return err
	}
	if err = unix.Linkat(int(f.Fd()), "", unix.AT_FDCWD, path, unix.AT_EMPTY_PATH); err == unix.ENOENT {
		return errors.New("/proc is not mounted, or covered")
	}
	return err
}

func hasProc() bool {
	var st unix.Statfs_t
	return unix.Statfs("/proc/self/fd", &st) == nil && st.Type == unix.PROC_SUPER_MAGIC
}

// removeOpen unlinks a file that stays open.
func removeOpen(f *os.File) { os.Remove(f.Name()) }

// umask is the process's umask, read without changing it where that is possible (proc(5), Linux 4.7).
func umask() os.FileMode {
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "Umask:"); ok {
			if n, err := strconv.ParseUint(strings.TrimSpace(v), 8, 32); err == nil {
				return os.FileMode(n)
			}
		}
	}
	mask := unix.Umask(0o077) // without /proc: what another thread makes meanwhile is for nobody else
	unix.Umask(mask)
	return os.FileMode(mask)
}
