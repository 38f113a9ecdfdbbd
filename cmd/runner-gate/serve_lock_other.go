//go:build !unix

package main

import "os"

// lockWhole takes no lock: this system has none that ends with the process.
func lockWhole(*os.File) bool { return true }

// private does not know who else can look into a directory of this system.
func private(os.FileInfo) error { return nil }
