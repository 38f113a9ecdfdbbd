package tool

import (
	"runtime"
	"strconv"
)

// DescriptorPath names an open descriptor as a file. Linux has /dev/fd only where user space
// made the link, which a minimal system has not.
func DescriptorPath(fd int) string {
	if runtime.GOOS == "linux" {
		return "/proc/self/fd/" + strconv.Itoa(fd)
	}
	return "/dev/fd/" + strconv.Itoa(fd)
}
