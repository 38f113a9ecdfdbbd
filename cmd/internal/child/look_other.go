//go:build !unix

package child

import (
	"errors"
	"os/exec"
)

// Look finds the program the way the system does. Its error is a *Failure.
func Look(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", failure(name, "", err)
	}
	return path, nil
}

func runnable(string) error { return errors.ErrUnsupported }

func noProcess(error) bool { return false }
