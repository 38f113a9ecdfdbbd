package main

import (
	"fmt"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/proc"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// mapJobs gives the items of standard input to workers and writes their results in the same order. A failure is a list
// without items, and exit 1.
func mapJobs(env *tool.Env) error {
	p, _, err := options(env)
	if err != nil {
		return err
	}
	file := env.Flag.String("worker")
	if file == "" {
		return tool.Missing("--worker FILE", "runner-proc map --worker request.bin -n 4 <items.bin >results.bin")
	}
	n := env.Flag.Int("n")
	if n < 1 || n > proc.MaxHandles {
		return tool.BadValue("n", fmt.Sprint(n), fmt.Sprintf("1 to %d", proc.MaxHandles))
	}
	f, err := os.Open(file)
	if err != nil {
		return tool.CannotRead(file, err)
	}
	defer f.Close()
	frame, err := readFrom(f, file, isFrame)
	if err != nil {
		return err
	}
	request, caps, err := proc.ParseFrame(frame)
	if err != nil {
		return tool.Fail(tool.ExitInput, fmt.Errorf("%s: %w", file, err), "runner-proc encode makes one from JSON")
	}
	b, err := read(env, func(b []byte) error {
		_, err := proc.ParseItems(b)
		return err
	})
	if err != nil {
		return err
	}
	jobs, err := proc.ParseItems(b)
	if err != nil {
		return tool.Fail(tool.ExitInput, fmt.Errorf("standard input: %w", err), "u32 number, then u32 length and bytes each")
	}
	r := proc.NewRunner(p)
	defer r.Close()
	if err := record(env, r); err != nil {
		return err
	}
	asked := endsWith(r)
	results, err := r.Map(request, caps, n, jobs)
	if err := recorded(r); err != nil {
		return err
	}
	if status := asked.status(); status != nil {
		return status
	}
	if err != nil {
		if e := write(env, proc.AppendItems(nil, nil)); e != nil {
			return e
		}
		return tool.Fail(tool.ExitNo, err)
	}
	return write(env, proc.AppendItems(nil, results))
}
