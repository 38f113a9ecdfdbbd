//go:build !linux

package main

import (
	"errors"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

var errSystem = errors.New("this is made of Linux namespaces: not on this system; har and prompts work here")

func runCommand(*tool.Env, Options) error { return tool.Fail(tool.ExitCannot, errSystem) }

func probe(*tool.Env) error { return tool.Fail(tool.ExitCannot, errSystem) }
