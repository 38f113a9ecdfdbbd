//go:build !unix

package main

import (
	"os"
	"os/exec"
)

const brokenPipe = 0 // no such thing here

func background(*exec.Cmd) {}

func endingOf(state *os.ProcessState) ending { return exited(state.ExitCode()) }
