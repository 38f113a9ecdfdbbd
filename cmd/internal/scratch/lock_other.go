//go:build !unix

package scratch

import (
	"errors"
	"os"
)

func openDir(path string) (*os.File, error) { return os.Open(path) }

// lock takes none: this system has none that ends with the process.
func lock(*os.File, bool) error { return errors.ErrUnsupported }

func own(string, *os.File) bool { return false }
