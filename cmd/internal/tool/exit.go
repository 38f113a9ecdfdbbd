package tool

import (
	"errors"
	"fmt"
)

// Exit codes of every tool. Any other non-zero value must be treated as failure.
// runner-exec passes the command's own code through, runner-policy its server's; both
// use 125 to 127 for themselves.
const (
	ExitOK        = 0 // did the job, on the full length of the input
	ExitNo        = 1 // the answer is no: does not verify, requirement not met
	ExitUsage     = 2 // unknown flag, wrong arguments
	ExitInput     = 3 // input is not a whole, valid stream, archive or policy file
	ExitCannot    = 4 // cannot observe here: no privilege, no BTF, no cgroup v2
	ExitIO        = 5 // could not read or write, or a bug
	ExitOwn       = 125
	ExitCannotRun = 126
	ExitNotFound  = 127
)

// Error carries an exit code and hints that say what to type.
type Error struct {
	Code  int
	Err   error
	Hints []string

	said    bool // it is an error of the tool itself, which has already printed it
	missing bool // the call lacks something
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Fail wraps err with an exit code. Without hints of its own, it has those that err has.
func Fail(code int, err error, hints ...string) error {
	var e *Error
	if len(hints) == 0 && errors.As(err, &e) {
		hints = e.Hints
	}
	return &Error{Code: code, Err: err, Hints: hints}
}

// Failf formats an error with an exit code.
func Failf(code int, format string, a ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, a...)}
}

// Usagef is a wrong call.
func Usagef(format string, a ...any) error { return Failf(ExitUsage, format, a...) }

// Said is an error that the tool has already printed.
func Said(code int) error { return &Error{Code: code, said: true} }

// Status is an exit code without a message: the answer of the tool, or the code of a command that it runs.
func Status(code int) error { return &Error{Code: code} }

func codeOf(err error) (int, *Error) {
	var e *Error
	if errors.As(err, &e) {
		return e.Code, e
	}
	return ExitIO, nil
}
