package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// lookProgram finds the server's program.
func lookProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", startError(name, err)
	}
	return path, nil
}

// startError turns the reason why a program does not start into 127 or 126.
func startError(name string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return tool.Failf(tool.ExitNotFound, "%s: server not found; nothing was run", name)
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		err = errno // without the "fork/exec path:" in front
	}
	return tool.Failf(tool.ExitCannotRun, "%s: cannot run the server: %w; nothing was run", name, err)
}

// serverEnvironment is ours without the name of the log: the server has no business
// there.
func serverEnvironment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, logVariable+"=") {
			env = append(env, v)
		}
	}
	return env
}

// nameOf makes a server's name of its command.
func nameOf(command string) string {
	name := []byte(filepath.Base(command))
	for i, c := range name {
		if !nameByte(c) {
			name[i] = '_'
		}
	}
	return string(name[:min(len(name), maxServerName)])
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0
}
