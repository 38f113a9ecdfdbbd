package main

import (
	"errors"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/box"
	"github.com/runner-evidence/runner/cmd/internal/confine"
	"github.com/runner-evidence/runner/cmd/internal/scratch"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// probe makes boxes that run nothing, and says which could be made. The exit code is 1 if one could not.
func probe(env *tool.Env) error {
	dir, err := scratch.New("runner-box")
	if err != nil {
		return err
	}
	defer dir.Remove()
	all := []struct {
		name string
		o    Options
	}{{"box", Options{}}, {"overlay", Options{Base: dir.Path}}}
	worked := true
	for _, x := range all {
		x.o.RunID, x.o.Workdir, x.o.Fallback = "probe", box.Workdir, box.FallbackFail
		c, err := x.o.config()
		if err == nil {
			c.Command = nil
			_, err = box.Run(c, []*os.File{os.Stdin, os.Stdout, os.Stderr}, nil, nil)
		}
		if err := env.Feature(x.name, err); err != nil {
			return err
		}
		worked = worked && err == nil
	}
	var privileged error
	if !confine.MayAdminister(0) {
		privileged = errors.New("without CAP_SYS_ADMIN boxes have a user namespace of their own")
	}
	if err := env.Feature("privileged", privileged); err != nil {
		return err
	}
	if !worked {
		return tool.Status(tool.ExitNo)
	}
	return nil
}
