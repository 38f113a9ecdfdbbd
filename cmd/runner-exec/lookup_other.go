//go:build !unix

package main

import (
	"errors"
	"os/exec"
)

// lookProgram finds the program the way the system does.
func lookProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return "", notFound(name)
		}
		return "", cannotRun(name, err)
	}
	return path, nil
}

func startError(name string, err error) error { return cannotRun(name, err) }
