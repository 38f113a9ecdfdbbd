//go:build !linux

package tool

import (
	"errors"
	"os"
	"runtime"
)

func openNameless(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func linkNameless(*os.File, string) error { return errors.ErrUnsupported }

// removeOpen unlinks a file that stays open, where the system allows it.
func removeOpen(f *os.File) {
	if runtime.GOOS != "windows" {
		os.Remove(f.Name())
	}
}

func umask() os.FileMode { return 0o022 }
