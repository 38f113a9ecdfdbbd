package tool

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameat2 is replaced by tests.
var renameat2 = unix.Renameat2

// RenameNew gives a file or directory a name that nothing has, in one step: what somebody else puts there meanwhile stays, and the
// error is os.ErrExist.
func RenameNew(from, to string) error {
	err := renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch err {
	case nil:
		return nil
	case unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP: // file systems that know no flags
		return renameNew(from, to)
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}
