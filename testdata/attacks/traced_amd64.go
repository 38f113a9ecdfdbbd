package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// Calls that a tracer answers or replaces.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "_traced" {
		runtime.LockOSThread() // the main thread is the one that is traced
	}
	helpers["_traced"] = func([]string) {
		stays, never := text("stays"), text("never")
		raw(unix.SYS_TGKILL, uintptr(os.Getpid()), uintptr(unix.Gettid()), uintptr(unix.SIGSTOP))
		raw(unix.SYS_UNLINKAT, cwd, addr(stays), 0)
		raw(unix.SYS_MKDIRAT, cwd, addr(never), 0o700)
		raw(unix.SYS_EXIT_GROUP, 0)
	}
	const sysEmu = 31
	add(attack{name: "a tracer emulates", class: "A4", user: true,
		what: "a tracer answers unlinkat and mkdirat with 0 (PTRACE_SYSEMU): they do not run",
		run: func(w *world) error {
			return trace(w, sysEmu, func(pid int, r *unix.PtraceRegs) { r.Rax = 0 })
		},
		judge: emulated})
	add(attack{name: "a tracer takes the number away", class: "A4", user: true,
		what: "a tracer changes the numbers of unlinkat and mkdirat to -1 and their results to 0: they do not run",
		run: func(w *world) error {
			entry := false
			return trace(w, unix.PTRACE_SYSCALL, func(pid int, r *unix.PtraceRegs) {
				if entry = !entry; entry && (r.Orig_rax == unix.SYS_UNLINKAT || r.Orig_rax == unix.SYS_MKDIRAT) {
					r.Orig_rax = ^uint64(0)
				}
				if r.Orig_rax == ^uint64(0) {
					r.Rax = 0
				}
			})
		},
		judge: emulated})
}

func emulated(e *evidence) verdict {
	if !e.exists("stays") || e.exists("never") {
		return failed("the file system says that it was done")
	}
	return e.compare(append(answered(schemas.EventUnlink, "stays"), answered(schemas.EventMkdir, "never")...))
}

// trace stops a helper at each call from the point where it stops itself, and changes its registers there.
func trace(w *world, request uintptr, change func(pid int, r *unix.PtraceRegs)) error {
	if err := os.WriteFile(w.path("stays"), nil, 0o600); err != nil {
		return err
	}
	c := w.helper("_traced")
	c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := c.Start(); err != nil {
		return err
	}
	pid, how := c.Process.Pid, uintptr(unix.PTRACE_CONT)
	for range 100 {
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		if status.Exited() || status.Signaled() {
			return nil
		}
		deliver := uintptr(0)
		switch sig := status.StopSignal(); {
		case sig == unix.SIGSTOP:
			how = request
		case sig == unix.SIGTRAP && how == request:
			var r unix.PtraceRegs
			if err := unix.PtraceGetRegs(pid, &r); err != nil {
				return err
			}
			if request != unix.PTRACE_SYSCALL && r.Orig_rax == unix.SYS_EXIT_GROUP {
				how = unix.PTRACE_CONT
				r.Rip -= 2
				r.Rax = r.Orig_rax
			} else {
				change(pid, &r)
			}
			if err := unix.PtraceSetRegs(pid, &r); err != nil {
				return err
			}
		case sig != unix.SIGTRAP:
			deliver = uintptr(sig)
		}
		if _, _, e := unix.RawSyscall6(unix.SYS_PTRACE, how, uintptr(pid), 0, deliver, 0, 0); e != 0 {
			return fmt.Errorf("ptrace: %w", e)
		}
	}
	return errors.New("it does not end")
}
