//go:build !linux

package tool

import "os"

// replaceOurs replaces what the tool wrote.
func (a *AtomicFile) replaceOurs(k keeper) error {
	if err := k.mayGo(a.path, a.path); err != nil {
		return err
	}
	return os.Rename(a.temp, a.path)
}
