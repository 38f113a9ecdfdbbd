package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// realTime are the signals of sigqueue(3); 32 and 33 belong to the C library.
var realTime = func() (s []syscall.Signal) {
	for n := syscall.Signal(34); n <= 64; n++ {
		s = append(s, n)
	}
	return s
}()

// startCommand starts the program in the scope, from its first instruction on:
// clone3 puts the child there (Linux 5.7), so there is no moment outside and no
// gate process to wait in. Between clone and execve the child opens nothing,
// hence the first event of the record is the program's own.
func startCommand(program string, argv []string, env []string, files []*os.File, sc *scope) (*os.Process, error) {
	attr := &os.ProcAttr{Files: files, Env: env, Sys: &syscall.SysProcAttr{}}
	if sc != nil {
		dir, err := os.Open(sc.at)
		if err != nil {
			return nil, fmt.Errorf("opening the cgroup: %w", err)
		}
		defer dir.Close()
		attr.Sys.UseCgroupFD = true
		attr.Sys.CgroupFD = int(dir.Fd())
	}
	p, err := os.StartProcess(program, argv, attr)
	if errors.Is(err, syscall.ENOEXEC) {
		// As execvp does for a script without "#!". The failed execve has then
		// happened inside the scope and is in the record: it was really tried.
		shell := append([]string{"/bin/sh", program}, argv[1:]...)
		return os.StartProcess(shell[0], shell, attr)
	}
	return p, err
}

// environment is the environment as we were given it. os.Environ would drop
// all but the first of entries with the same name.
func environment() []string {
	b, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return os.Environ()
	}
	env := strings.Split(string(b), "\x00")
	return env[:len(env)-1]
}
