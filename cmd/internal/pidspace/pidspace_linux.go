// Package pidspace knows in which pid namespace we are: process ids are numbers in one.
package pidspace

import (
	"math"

	"golang.org/x/sys/unix"
)

// Own is the inode number of our pid namespace, 0 if it cannot be read.
func Own() uint32 {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) != nil || st.Ino > math.MaxUint32 {
		return 0
	}
	return uint32(st.Ino)
}
