//go:build linux

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"
)

// This file has the workloads that need much of something: processes, names, forks, calls.

// openLoops runs the open loop in several processes at once: FILE N PROCESSES.
func openLoops(args []string) (func() error, error) {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return nil, err
	}
	many, err := strconv.Atoi(args[2])
	return func() error {
		var all []*exec.Cmd
		for range many {
			c := exec.Command("/proc/self/exe", workloadArg, "open", args[0], strconv.Itoa(n/many))
			if err := c.Start(); err != nil {
				return err
			}
			all = append(all, c)
		}
		var err error
		for _, c := range all {
			err = errors.Join(err, c.Wait())
		}
		return err
	}, err
}

// nameLoop opens n names that do not exist, each another one.
func nameLoop(dir string, n int) error {
	const atFDCWD = ^uintptr(99) // -100
	for i := range n {
		p, err := syscall.BytePtrFromString(filepath.Join(dir, fmt.Sprintf("name_%07d", i)))
		if err != nil {
			return err
		}
		if _, _, err := syscall.RawSyscall6(syscall.SYS_OPENAT, atFDCWD, uintptr(unsafe.Pointer(p)), syscall.O_RDONLY, 0, 0, 0); err != syscall.ENOENT {
			return fmt.Errorf("%s: %v, expected that there is none", dir, err)
		}
	}
	return nil
}

// forkLoop lets a shell fork n times.
func forkLoop(n string) error {
	return exec.Command("/bin/sh", "-c", `i=0; while [ $i -lt `+n+` ]; do (:); i=$((i+1)); done`).Run()
}

// callLoop makes n calls that do next to nothing.
func callLoop(n int) error {
	for range n {
		syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
	}
	return nil
}
