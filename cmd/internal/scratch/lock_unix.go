//go:build unix

package scratch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

func openDir(path string) (*os.File, error) {
	return os.OpenFile(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// lock takes the lock of a directory. It ends with the process, whatever ends that.
func lock(f *os.File, wait bool) error {
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// own reports whether an open directory is this user's, or is in one where nobody else can make a name.
func own(path string, f *os.File) bool {
	info, err := f.Stat()
	if err != nil || !info.IsDir() {
		return false
	}
	above, err := os.Lstat(filepath.Dir(path))
	return mine(info) || err == nil && mine(above) && above.IsDir() && above.Mode().Perm()&0o022 == 0
}

func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
