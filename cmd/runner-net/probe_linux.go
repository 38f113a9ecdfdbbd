package main

import (
	"errors"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/confine"
	"github.com/runner-evidence/runner/cmd/internal/netns"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// probe makes a namespace, runs nothing in it, and says whether that worked. The exit code is 1 if it did not.
func probe(env *tool.Env) error {
	space, err := netns.Start(netns.Config{Ports: []uint16{80, 443}, Rootless: !confine.MayAdminister(0)}, []*os.File{os.Stdin, os.Stdout, os.Stderr})
	if err == nil {
		space.Close()
	}
	if e := env.Feature("network", err); e != nil {
		return e
	}
	var privileged error
	if !confine.MayAdminister(0) {
		privileged = errors.New("without CAP_SYS_ADMIN there is a user namespace too")
	}
	if e := env.Feature("privileged", privileged); e != nil {
		return e
	}
	if err != nil {
		return tool.Status(tool.ExitNo)
	}
	return nil
}
