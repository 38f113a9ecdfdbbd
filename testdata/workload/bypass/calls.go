//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// opens opens a file and closes it again.
func opens(path string, flags int) error { return opensAt(unix.AT_FDCWD, path, flags) }

func opensAt(dir int, path string, flags int) error {
	fd, err := unix.Openat(dir, path, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// reads opens a file for reading and reads a byte: a mechanism may let the open through
// and refuse the read.
func readsAt(dir int, path string) error {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Read(fd, make([]byte, 1))
	return err
}

func readFile(path string) error { return readsAt(unix.AT_FDCWD, path) }

// opath opens a file or a directory without access to its content.
func opath(path string) (int, error) {
	return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
}

func fdPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// runs executes a program and waits for it.
func runs(path string) error {
	pid, err := syscall.ForkExec(path, []string{"prog"}, &syscall.ProcAttr{Env: []string{}, Files: []uintptr{0, 2, 2}})
	if err != nil {
		return err
	}
	var ws syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &ws, 0, nil); err != syscall.EINTR {
			break
		}
	}
	if ws.ExitStatus() != 0 {
		return fmt.Errorf("the program ended with %#x", int(ws))
	}
	return nil
}

// copyTo copies a file into an open one.
func copyTo(fd int, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, b)
	return err
}

// ownMounts gives this thread a mount namespace of its own.
func ownMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a mount namespace: %w", hide(err))
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", hide(err))
	}
	return nil
}

// bind mounts a folder at another place.
func bind(from, to string) error { return unix.Mount(from, to, "", unix.MS_BIND, "") }

// hide keeps an error from being taken for a refusal by the rules: the machine refused
// something that the attempt needs.
func hide(err error) error { return errors.New(err.Error()) }

// first returns the first error of steps that depend on each other.
func first(steps ...func() error) error {
	for _, f := range steps {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}
