package main

import "runtime/debug"

// An archive of at most 64 MiB is checked in 128 MiB, whatever is in it: the limits of the
// specification bound what is kept, and the collector works harder before the rest is twice that.
const softLimit = 96 << 20 // bytes

func boundMemory() {
	debug.SetMemoryLimit(softLimit)
}
