//go:build linux && !amd64 && !386 && !arm

package main

// Only x86 and 32-bit ARM have the calls without a directory argument.

func oldOpens() {}

func oldTree() {}

func oldAttrs(string, uintptr, uintptr) {}
