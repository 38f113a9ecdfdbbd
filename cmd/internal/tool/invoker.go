package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// Invoker is the user who called this program with sudo. Without sudo, and if that user is
// root, it is nobody.
func Invoker() (uid, gid uint32, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	u, errU := strconv.ParseUint(os.Getenv("SUDO_UID"), 10, 31)
	g, errG := strconv.ParseUint(os.Getenv("SUDO_GID"), 10, 31)
	return uint32(u), uint32(g), errU == nil && errG == nil && u != 0
}

// GiveToInvoker makes a file that root made belong to the user who called sudo. It takes
// an open file: a name could be another file's by now. A file system that takes no owner, or
// a container that does not know the user, is no reason to lose a record: the file stays root's.
func GiveToInvoker(f *os.File) error {
	uid, gid, ok := Invoker()
	if !ok {
		return nil
	}
	err := f.Chown(int(uid), int(gid))
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

// GiveDirToInvoker does the same for a directory that was just made. The name must still be
// that of a directory, and not of a symlink to one.
func GiveDirToInvoker(path string) error {
	if _, _, ok := Invoker(); !ok {
		return nil
	}
	named, err := os.Lstat(path)
	if err != nil {
		return err
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if opened, err := dir.Stat(); err != nil || !named.IsDir() || !os.SameFile(named, opened) {
		return fmt.Errorf("%s was replaced", path)
	}
	return GiveToInvoker(dir)
}
