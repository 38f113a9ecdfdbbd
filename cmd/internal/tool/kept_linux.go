package tool

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// replaceOurs replaces what the tool wrote. Both change their names, and what comes out is looked at before it is removed: between
// a look and a rename somebody else could put another file there.
func (a *AtomicFile) replaceOurs(k keeper) error {
	exchange := func() error {
		return renameat2(unix.AT_FDCWD, a.temp, unix.AT_FDCWD, a.path, unix.RENAME_EXCHANGE)
	}
	switch err := exchange(); err {
	case nil:
	case unix.ENOENT: // it is gone
		return RenameNew(a.temp, a.path)
	default: // a file system that knows no flags
		if err := k.mayGo(a.path, a.path); err != nil {
			return err
		}
		return os.Rename(a.temp, a.path)
	}
	err := k.mayGo(a.temp, a.path)
	if err == nil {
		return os.Remove(a.temp)
	}
	if back := exchange(); back != nil {
		name := a.temp
		a.temp = "" // it is not ours to remove
		return errors.Join(err, fmt.Errorf("it is %s now, and was not put back: %w", shown(name), back))
	}
	return err
}
