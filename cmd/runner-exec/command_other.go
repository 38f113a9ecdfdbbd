//go:build !linux

package main

import "os"

func startCommand(program string, argv []string, files []*os.File, _ *scope) (*os.Process, error) {
	return os.StartProcess(program, argv, &os.ProcAttr{Files: files})
}
