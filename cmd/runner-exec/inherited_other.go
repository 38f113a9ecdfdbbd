//go:build !linux

package main

// inheritedFDs is used only by the kernel layer.
func inheritedFDs() uint64 { return 0 }
