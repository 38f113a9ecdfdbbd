package child

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Sibling finds another tool of this project: next to the running program, else on PATH.
func Sibling(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", name, err)
	}
	if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
		return path, nil
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%s is neither in %s nor on PATH", name, filepath.Dir(self))
}
