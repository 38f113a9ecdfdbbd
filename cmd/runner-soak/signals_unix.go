//go:build unix

package main

import "syscall"

// terminate asks runner-exec to end; it passes it on to the command.
const terminate = syscall.SIGTERM
