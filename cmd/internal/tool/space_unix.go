//go:build linux || darwin

package tool

import "golang.org/x/sys/unix"

// freeSpace is what may be written below a directory, in bytes.
func freeSpace(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}
