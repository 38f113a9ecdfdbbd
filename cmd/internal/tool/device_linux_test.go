package tool

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestDevice: a character device is written in place, and nothing of it is changed or replaced.
func TestDevice(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	testkit.Must(t, os.Symlink(os.DevNull, link))
	before, err := os.Stat(os.DevNull)
	testkit.Must(t, err)
	for _, path := range []string{os.DevNull, link} {
		for name, end := range map[string]func(*AtomicFile) error{"commit": (*AtomicFile).Commit, "abort": func(a *AtomicFile) error { a.Abort(); return nil }} {
			first, err := CreateAtomic(path)
			testkit.Must(t, err)
			first.Abort()
			a, err := first.Again()
			testkit.Must(t, err)
			_, err = io.WriteString(a, "lost")
			testkit.Must(t, err)
			if err := end(a); err != nil {
				t.Errorf("%s %s: %v", path, name, err)
			}
			if _, err := a.File.Write(nil); err == nil {
				t.Errorf("%s %s: still open", path, name)
			}
		}
	}
	after, err := os.Stat(os.DevNull)
	if err != nil || !os.SameFile(before, after) || before.Mode() != after.Mode() || names(t, dir) != "link" {
		t.Errorf("%v became %v, %v, and there is %s", before, after, err, names(t, dir))
	}
	full, err := CreateAtomic("/dev/full")
	testkit.Must(t, err)
	defer full.Abort()
	if _, err := full.Write([]byte("x")); err != unix.ENOSPC {
		t.Errorf("/dev/full: %v", err)
	}
}

// TestNoDevice: what is neither a file nor a character device is no place to write to, and a terminal is none either.
func TestNoDevice(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	testkit.Must(t, unix.Mkfifo(fifo, 0o600))
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		testkit.Skip(t, "terminals", err)
	}
	defer terminal.Close()
	testkit.Must(t, unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN)
	testkit.Must(t, err)
	for _, path := range []string{fifo, filepath.Join("/dev/pts", strconv.Itoa(n))} {
		if a, err := CreateAtomic(path); err == nil {
			a.Abort()
			t.Errorf("opened %s", path)
		}
	}
}
