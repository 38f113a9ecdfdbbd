package main

import (
	"errors"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/confine"
	"github.com/runner-evidence/runner/cmd/internal/netns"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// feature is one line of --probe.
type feature struct {
	Feature string `json:"feature"`
	Works   bool   `json:"works"`
	Why     string `json:"why,omitempty"`
}

// probe makes a namespace, runs nothing in it, and says whether that worked. The exit code is 1 if it did not.
func probe(env *tool.Env) error {
	space, err := netns.Start(netns.Config{Ports: []uint16{80, 443}, Rootless: !confine.MayAdminister(0)}, []*os.File{os.Stdin, os.Stdout, os.Stderr})
	if err == nil {
		space.Close()
	}
	if e := say(env, "network", err); e != nil {
		return e
	}
	var privileged error
	if !confine.MayAdminister(0) {
		privileged = errors.New("without CAP_SYS_ADMIN there is a user namespace too")
	}
	if e := say(env, "privileged", privileged); e != nil {
		return e
	}
	if err != nil {
		return tool.Status(tool.ExitNo)
	}
	return nil
}

func say(env *tool.Env, name string, err error) error {
	f := feature{Feature: name, Works: err == nil}
	if err != nil {
		f.Why = err.Error()
	}
	line, e := schemas.Marshal(f)
	if e != nil {
		return e
	}
	if _, e = env.Stdout.Write(append(line, '\n')); e != nil {
		return tool.CannotWrite("standard output", e)
	}
	return nil
}
