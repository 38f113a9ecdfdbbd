//go:build unix && !linux

package main

import "syscall"

var realTime []syscall.Signal
