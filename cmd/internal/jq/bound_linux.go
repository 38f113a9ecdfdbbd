package jq

import "golang.org/x/sys/unix"

// The Go runtime maps its heap in steps of 64 MiB, and needs some memory besides.
const besides = 48 << 20

// bound asks the kernel to end the process before it takes more. A limit of the address space
// would be about what is only reserved, too.
func bound(memory uint64) {
	unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: memory + besides, Max: memory + besides})
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}
