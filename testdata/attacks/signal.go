//go:build linux

package main

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// handlers are machine code of signal handlers that only return: the runtime's own would end
// the program. The first word is the handler, the second the call rt_sigreturn.
var handlers = map[string][]byte{
	"amd64": {0xc3, 0x90, 0x90, 0x90, 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05},
	"arm64": {0xc0, 0x03, 0x5f, 0xd6, 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4},
}

// survive makes a signal interrupt the thread and nothing more. flags are further ones of sigaction.
func survive(sig unix.Signal, flags uint64) error {
	code := handlers[runtime.GOARCH]
	if code == nil {
		return notHere("no signal handler for " + runtime.GOARCH)
	}
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil {
		copy(page, code)
		err = unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC)
	}
	if err != nil {
		return fmt.Errorf("a page for code: %w", err)
	}
	const restorer, onStack = 0x04000000, 0x08000000
	action := struct {
		handler  uintptr
		flags    uint64
		restorer uintptr
		mask     uint64
	}{addr(&page[0]), flags | restorer | onStack, addr(&page[4]), 0}
	if r := raw(unix.SYS_RT_SIGACTION, uintptr(sig), addr(&action), 0, 8); r < 0 {
		return fmt.Errorf("rt_sigaction: %w", unix.Errno(-r))
	}
	return nil
}
