//go:build linux

package main

import (
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

func init() { stages["_again"] = again }

// again runs a program over and over until it is killed; the program dies with it.
func again(argv []string) {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		os.Exit(1)
	}
	for {
		c := exec.Command(argv[0], argv[1:]...)
		c.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
		if err := c.Start(); err != nil {
			os.Exit(1)
		}
		c.Wait()
	}
}
