//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// code is machine code of signal handlers: the runtime's own would end the program. The first only returns; the second adds to where the
// program goes on, so that a call that would start over is left, as by a jump out of the handler. The third is the call rt_sigreturn.
var code = map[string][3][]byte{
	"amd64": {{0xc3}, {0x48, 0x83, 0x82, 0xa8, 0, 0, 0, 2, 0xc3}, {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}},
	"arm64": {{0xc0, 0x03, 0x5f, 0xd6}, {0x49, 0xdc, 0x40, 0xf9, 0x29, 0x11, 0x00, 0x91, 0x49, 0xdc, 0x00, 0xf9, 0xc0, 0x03, 0x5f, 0xd6},
		{0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4}},
}

// survive makes a signal interrupt the thread and nothing more. flags are further ones of sigaction.
func survive(sig unix.Signal, flags uint64) error { return handle(sig, flags, 0) }

// leave makes a signal end the call that it interrupts as a jump out of the handler does.
func leave(sig unix.Signal) error {
	const restart = 0x10000000
	return handle(sig, restart, 1)
}

func handle(sig unix.Signal, flags uint64, how int) error {
	parts, ok := code[runtime.GOARCH]
	if !ok {
		return notHere("no signal handler for " + runtime.GOARCH)
	}
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil {
		copy(page, parts[how])
		copy(page[32:], parts[2])
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
	}{addr(&page[0]), flags | restorer | onStack, addr(&page[32]), 0}
	if r := raw(unix.SYS_RT_SIGACTION, uintptr(sig), addr(&action), 0, 8); r < 0 {
		return fmt.Errorf("rt_sigaction: %w", unix.Errno(-r))
	}
	return nil
}

func init() {
	add(attack{name: "a call that a handler leaves", class: "B10", user: true,
		what: "an open of a FIFO waits and is interrupted; the handler does not go back to it (siglongjmp), and the thread opens another file with the same flags",
		run: func(w *world) error {
			if err := errors.Join(unix.Mkfifo("fifo", 0o600), os.WriteFile("other", nil, 0o600), leave(unix.SIGUSR2)); err != nil {
				return err
			}
			var waits waiter
			ended := make(chan int64)
			go func() {
				runtime.LockOSThread()
				fifo, other := text("fifo"), text("other")
				waits.calls()
				raw(unix.SYS_OPENAT, cwd, addr(fifo), unix.O_RDONLY)
				ended <- raw(unix.SYS_OPENAT, cwd, addr(other), unix.O_RDONLY)
			}()
			for waits.tid.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			if err := waits.asleep(); err != nil {
				return err
			}
			unix.Tgkill(os.Getpid(), int(waits.tid.Load()), unix.SIGUSR2)
			w.say("ret", <-ended)
			return nil
		},
		judge: func(e *evidence) verdict {
			if strings.HasPrefix(e.said("ret"), "-") {
				return failed("the second open failed: %s", e.said("ret"))
			}
			left, opened := 0, 0
			for i := range e.own {
				switch l := &e.own[i]; {
				case l.Type != schemas.EventOpenat:
				case l.text() == e.path("fifo") && l.Return == nil && l.Status == "":
					left++
				case l.text() == e.path("other") && l.Status == schemas.StatusSuccess && l.Flags != nil && *l.Flags&unix.O_CREAT == 0:
					opened++
				}
			}
			if left != 1 || opened != 1 {
				return lie("%d lines of the open that was left, %d of the next one", left, opened)
			}
			return exact()
		}})
}
