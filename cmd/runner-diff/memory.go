package main

import "runtime/debug"

// softLimit bounds the memory, in bytes: with as many items as are kept, both sides need less, and the collector
// works harder before the rest is as much again.
const softLimit = 100 << 20

func boundMemory() { debug.SetMemoryLimit(softLimit) }
