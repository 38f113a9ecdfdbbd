//go:build !linux

package tool

import "os"

func guardScratch(*os.File) {}
