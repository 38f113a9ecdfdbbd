package tool

import (
	"os"
	"syscall"
)

// renameNew is RenameNew without help of the kernel. A link is made only where nothing is, and so is a directory; a directory
// is renamed only over an empty one.
func renameNew(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if err := os.Link(from, to); err != nil {
			return err
		}
		return os.Remove(from)
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	if err := syscall.Rename(from, to); err != nil { // os.Rename refuses any directory
		os.Remove(to) // if it is still empty
		return err
	}
	return nil
}
