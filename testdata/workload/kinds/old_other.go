//go:build linux && !amd64

package main

// Only amd64 has the calls without a directory argument.

func oldOpens() {}

func oldTree() {}

func oldAttrs(string, uintptr, uintptr) {}
