package tool

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ScratchError is the error for a scratch file or directory that could not be made, written or read. The name of such a file says
// nothing to a user, so it names the directory, what chose it, and what to type. An error that is one already stays as it is.
func ScratchError(err error) error {
	if errors.Is(err, ErrScratch) {
		return err
	}
	hint := "name a directory that is there and can be written to: TMPDIR=DIR"
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		hint = "free some space, or name another directory: TMPDIR=DIR"
	}
	return Fail(ExitIO, &scratchError{cause(err)}, hint)
}

// ErrScratch is what each ScratchError is.
var ErrScratch = errors.New("a scratch file cannot be used")

type scratchError struct{ why error }

func (e *scratchError) Error() string {
	chosen := "which TMPDIR names"
	if os.Getenv("TMPDIR") == "" {
		chosen = "as TMPDIR names no other"
	}
	return fmt.Sprintf("cannot use a scratch file in %s, %s: %v", shown(os.TempDir()), chosen, e.why)
}

func (e *scratchError) Unwrap() []error { return []error{ErrScratch, e.why} }

// CanScratch refuses a directory for temporary files in which none can be made. A tool that runs a command asks before it starts it:
// what it needs such a file for may come only when the command has ended.
func CanScratch() error {
	f, err := Nameless()
	if err != nil {
		return err
	}
	return f.Close()
}
