//go:build !linux

package main

import "os"

func startCommand(program string, argv []string, env []string, files []*os.File, _ *scope) (*os.Process, error) {
	return os.StartProcess(program, argv, &os.ProcAttr{Files: files, Env: env})
}

func environment() []string { return os.Environ() }
