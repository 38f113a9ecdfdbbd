package child

import "syscall"

// realTime are the signals of sigqueue(3); 32 and 33 belong to the C library.
var realTime = func() (s []syscall.Signal) {
	for n := syscall.Signal(34); n <= 64; n++ {
		s = append(s, n)
	}
	return s
}()
