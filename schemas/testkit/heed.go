//go:build unix

package testkit

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Heed starts the test binary once more if it was started with SIGHUP or SIGINT ignored, as nohup and a shell's & do: each
// program that a test starts would inherit that. A signal that is caught is not ignored after an exec.
func Heed() {
	heard := make(chan os.Signal, 1)
	ignored := false
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			ignored = true
			signal.Notify(heard, s)
		}
	}
	if !ignored {
		return
	}
	self, err := os.Executable()
	if err == nil {
		err = syscall.Exec(self, os.Args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "with SIGHUP or SIGINT ignored:", err)
	os.Exit(1)
}
