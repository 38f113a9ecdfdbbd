package tool

import (
	"os"
	"path/filepath"
)

// Within reports whether a path is a directory, or below it, also one that is still to be made and by another name.
func Within(path, dir string) (bool, error) {
	top, err := os.Stat(dir)
	if err != nil {
		return false, CannotRead(dir, err)
	}
	at, err := filepath.Abs(path)
	if err != nil {
		return false, CannotRead(path, err)
	}
	for real, err := filepath.EvalSymlinks(at); ; real, err = filepath.EvalSymlinks(at) {
		if err == nil {
			at = real
			break
		}
		if at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at) // it is to be made
	}
	for ; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && os.SameFile(info, top) {
			return true, nil
		}
		if at == filepath.Dir(at) {
			return false, nil
		}
	}
}
