package cgroup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// heldPrefix begins the paths that Hold returns. A descriptor's number follows.
const heldPrefix = "/proc/self/fd/"

// Hold returns a path for the cgroup dir that stays valid, for this process, until the file is
// closed. The functions of this package find a cgroup by such a path, and its files, without
// /proc and without following a mount: the command can be root and mount over each of them.
func Hold(dir string) (string, *os.File, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, err
	}
	parent, err := os.OpenFile(filepath.Dir(dir), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("%s%d/%s", heldPrefix, parent.Fd(), filepath.Base(dir)), parent, nil
}

// held splits a path of Hold, or one below it.
func held(path string) (fd int, rest string, ok bool) {
	text, ok := strings.CutPrefix(path, heldPrefix)
	number, rest, _ := strings.Cut(text, "/")
	fd, err := strconv.Atoi(number)
	return fd, rest, ok && err == nil
}

// open opens a file of a cgroup, or the cgroup's directory if name is ".".
func open(dir, name string, flags int) (*os.File, error) {
	path := filepath.Join(dir, name)
	fd, rest, ok := held(path)
	if !ok {
		return os.OpenFile(path, flags, 0)
	}
	got, err := unix.Openat2(fd, filepath.Join(".", rest), &unix.OpenHow{Flags: uint64(flags) | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS})
	if errors.Is(err, unix.EXDEV) {
		err = fmt.Errorf("something is mounted over it: %w", err)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(got), path), nil
}

func read(dir, name string) ([]byte, error) {
	f, err := open(dir, name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

func write(dir, name, text string) error {
	f, err := open(dir, name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// Exists returns nil if the cgroup exists.
func Exists(dir string) error {
	f, err := Open(dir)
	if err == nil {
		f.Close()
	}
	return err
}

// Gone reports whether a call failed because its cgroup does not exist any more. The kernel takes the files of a cgroup
// away before the cgroup itself (cgroup_destroy_locked, Linux 6.18): one that is just being removed is awaited.
func Gone(dir string, err error) bool {
	removed := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)
	for try := 0; err != nil; try++ {
		if Exists(dir) != nil {
			return true
		}
		if !removed || try == 200 {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// Open opens the directory of a cgroup.
func Open(dir string) (*os.File, error) { return open(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY) }

// MakeBelow makes a cgroup in dir whose name begins with prefix, and returns its path.
func MakeBelow(dir, prefix string) (string, error) {
	return makeBelow(dir, fmt.Sprintf("%s%d-", prefix, os.Getpid()), 1000)
}

// MakeFirst is MakeBelow with a name that depends on nothing but the cgroups that are there: the prefix and the first
// number that is free.
func MakeFirst(dir, prefix string) (string, error) { return makeBelow(dir, prefix, 10000) }

func makeBelow(dir, prefix string, most int) (string, error) {
	parent, err := Open(dir)
	if err != nil {
		return "", err
	}
	defer parent.Close()
	for n := 0; ; n++ {
		name := fmt.Sprint(prefix, n)
		err := unix.Mkdirat(int(parent.Fd()), name, 0o700)
		if err == nil {
			return filepath.Join(dir, name), nil
		}
		if !errors.Is(err, unix.EEXIST) || n == most {
			return "", &os.PathError{Op: "mkdir", Path: filepath.Join(dir, name), Err: err}
		}
	}
}

// rmdir removes one cgroup.
func rmdir(dir string) error {
	fd, rest, ok := held(dir)
	if !ok || rest == "" {
		return unix.Rmdir(dir)
	}
	parent, err := open(filepath.Dir(filepath.Join(heldPrefix, strconv.Itoa(fd), rest)), ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer parent.Close()
	return unix.Unlinkat(int(parent.Fd()), filepath.Base(rest), unix.AT_REMOVEDIR)
}
