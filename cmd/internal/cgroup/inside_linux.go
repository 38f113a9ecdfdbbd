package cgroup

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// InsideRun reports whether a cgroup is below that of a run, by the mark that Claim leaves.
func InsideRun(dir string) bool {
	for {
		above := filepath.Dir(dir)
		if above == dir || !IsV2(above) {
			return false
		}
		if n, err := unix.Getxattr(above, claimed, nil); err == nil && n > 0 {
			return true
		}
		dir = above
	}
}
