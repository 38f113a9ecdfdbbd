package child

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Inherited counts the descriptors above 2 that a program inherits from us. They were
// opened before the record began, so the record reports them as a blind spot. The
// descriptors that a tool opened itself are closed on exec.
func Inherited() (n uint64, err error) {
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, fmt.Errorf("counting the descriptors that the program inherits: %w", err)
	}
	for _, d := range dir {
		fd, err := strconv.Atoi(d.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			n++
		}
	}
	return n, nil
}
