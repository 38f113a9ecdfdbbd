//go:build !unix

package main

import "os"

// connect returns the two ends of a one-way connection.
func connect() (r, w *os.File, err error) { return os.Pipe() }
