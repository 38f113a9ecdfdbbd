package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"syscall"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// Failure is why a program was not started.
type Failure struct {
	Name string // of the program
	Code int    // tool.ExitNotFound, ExitCannotRun, ExitCannot, or ExitOwn (no process could be made)
	Why  error  // nil: nothing to add
}

func (f *Failure) Error() string {
	switch {
	case f.Code == tool.ExitNotFound && f.Why == nil:
		return f.Name + ": command not found"
	case f.Code == tool.ExitNotFound:
		return fmt.Sprintf("%s: command not found: %v", f.Name, f.Why)
	case f.Code == tool.ExitCannot:
		return f.Why.Error()
	case f.Code == tool.ExitCannotRun:
		return fmt.Sprintf("%s: cannot run: %v", f.Name, f.Why)
	}
	return fmt.Sprintf("%s: cannot make a process: %v", f.Name, f.Why)
}

func (f *Failure) Unwrap() error { return f.Why }

var errInterpreter = errors.New("the file exists, but the interpreter that it names does not")

// errDirectory is what execve refuses as EACCES.
var errDirectory = fmt.Errorf("it is a directory: %w", syscall.EACCES)

// Refusal is the error of a tool whose program was not started. It carries the exit code;
// after completes the message with what this means for the user.
func Refusal(err error, after string) error {
	code := tool.ExitOwn
	var f *Failure
	if errors.As(err, &f) {
		code = f.Code
	}
	return tool.Failf(code, "%w; %s", err, after)
}

// failure sorts the error of a failed start.
func failure(name, program string, err error) *Failure {
	var known *Failure
	if errors.As(err, &known) {
		return known
	}
	var coded *tool.Error
	if errors.As(err, &coded) { // of the preparation, which knows its exit code
		return &Failure{name, coded.Code, err}
	}
	var errno syscall.Errno
	if errors.As(err, &errno) && err != errDirectory {
		err = errno // without the "fork/exec path:" that Go puts before it
	}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		if program != "" && runnable(program) == nil {
			return &Failure{name, tool.ExitNotFound, errInterpreter}
		}
		return &Failure{name, tool.ExitNotFound, nil}
	case noProcess(err):
		return &Failure{name, tool.ExitOwn, err}
	}
	return &Failure{name, tool.ExitCannotRun, err}
}
