package tool

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Written lets go of standard output before the process ends: who reads it sees that everything is there, while this process
// still cleans up. What is written after that goes nowhere. The error is that of the last write, where one is told at the end.
func (e *Env) Written() error {
	f, ok := e.Stdout.(*os.File)
	if !ok {
		return nil
	}
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer nowhere.Close()
	fd := int(f.Fd())
	last, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	err = unix.Dup3(int(nowhere.Fd()), fd, 0) // the number stays taken
	return errors.Join(err, unix.Close(last))
}
