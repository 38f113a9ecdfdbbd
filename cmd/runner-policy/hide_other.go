//go:build !linux

package main

// hide does nothing on this system.
func hide() {}
