package main

import "golang.org/x/sys/unix"

// hide keeps processes of the same user, such as the server, from our memory and our
// descriptors, the log among them.
func hide() { unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
