//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// lookProgram finds the file that execvp would try for name. Looking before the
// stages start answers most "no such command" cases without side effects.
func lookProgram(name string) (string, error) {
	if name == "" {
		return "", notFound("(empty name)")
	}
	if strings.Contains(name, "/") {
		if err := runnable(name); err != nil {
			return "", startError(name, err)
		}
		return name, nil
	}
	path, ok := os.LookupEnv("PATH")
	if !ok {
		path = "/bin:/usr/bin" // what execvp uses
	}
	denied := error(nil)
	for _, dir := range strings.Split(path, ":") {
		if dir == "" {
			dir = "." // an empty element is the working directory
		}
		file := filepath.Join(dir, name)
		if !strings.Contains(file, "/") {
			file = "./" + file
		}
		err := runnable(file)
		if err == nil {
			return file, nil
		}
		if errors.Is(err, syscall.EACCES) && denied == nil {
			denied = err
		}
	}
	if denied != nil {
		return "", cannotRun(name, denied)
	}
	return "", notFound(name)
}

// runnable is nil if the file can be given to execve, as far as one can see
// from outside.
func runnable(file string) error {
	st, err := os.Stat(file)
	if err != nil {
		return errors.Unwrap(err)
	}
	if st.IsDir() || !st.Mode().IsRegular() {
		return syscall.EACCES // execve's own answer for anything but a file
	}
	return unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS)
}

// startError turns the errno of a failed start into 127, 126 or, when no
// process could be made at all, 125.
func startError(name string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		if runnable(name) == nil {
			return notFound(name + ": the file is there, the interpreter it names is not")
		}
		return notFound(name)
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM):
		return ownFailure(err)
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		err = errno // without the "fork/exec path:" that Go puts in front
	}
	return cannotRun(name, err)
}
