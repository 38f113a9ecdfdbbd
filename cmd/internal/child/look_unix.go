//go:build unix

package child

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// Look finds the file that execvp would try for name. A tool calls it before it starts
// anything else, so that a missing command has no side effects. Its error is a *Failure.
func Look(name string) (string, error) {
	if name == "" {
		return "", &Failure{"(empty name)", tool.ExitNotFound, nil}
	}
	if strings.Contains(name, "/") {
		if err := runnable(name); err != nil {
			return "", failure(name, "", err)
		}
		return name, nil
	}
	path, ok := os.LookupEnv("PATH")
	if !ok {
		path = "/bin:/usr/bin" // what execvp uses
	}
	var denied error
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
		return "", &Failure{name, tool.ExitCannotRun, denied}
	}
	return "", &Failure{name, tool.ExitNotFound, nil}
}

// runnable is nil if the file can be given to execve, as far as this can be checked
// without executing it.
func runnable(file string) error {
	st, err := os.Stat(file)
	if err != nil {
		return errors.Unwrap(err)
	}
	if st.IsDir() {
		return errDirectory
	}
	if !st.Mode().IsRegular() {
		return syscall.EACCES // execve's error for anything except a regular file
	}
	return unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS)
}

// noProcess reports whether the system could not make a process at all.
func noProcess(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM)
}
