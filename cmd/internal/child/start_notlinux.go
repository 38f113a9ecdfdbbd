//go:build !linux

package child

import "os"

// Environ is our environment.
func Environ() []string { return os.Environ() }

// AwaitExit returns when the process has ended. Here that reaps it.
func (p *Process) AwaitExit() { p.Wait() }

// WidenPipe does nothing here.
func WidenPipe(*os.File) {}

// WidenPipeFD does nothing here.
func WidenPipeFD(uintptr) {}
