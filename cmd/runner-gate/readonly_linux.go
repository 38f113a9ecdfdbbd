package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// writable refuses a directory on a file system that is mounted read-only, before anything is begun there.
func writable(dir string) error {
	if err := unix.Access(dir, unix.W_OK); errors.Is(err, unix.EROFS) {
		return tool.CannotWrite(dir, &os.PathError{Op: "access", Path: dir, Err: err})
	}
	return nil // rights are another question: the owner of a directory can open it
}
