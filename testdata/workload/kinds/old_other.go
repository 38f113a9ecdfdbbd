//go:build linux && !amd64 && !386

package main

// Only x86 has the calls without a directory argument.

func oldOpens() {}

func oldTree() {}

func oldAttrs(string, uintptr, uintptr) {}
