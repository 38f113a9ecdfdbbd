//go:build unix && !linux

package child

import "syscall"

var realTime []syscall.Signal
