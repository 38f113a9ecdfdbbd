package main

import (
	"bufio"
	"context"
	"io"

	"github.com/runner-evidence/runner/cmd/internal/exchange"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// har prints a record as HAR.
func har(ctx context.Context, env *tool.Env) error {
	return project(ctx, env, (*exchange.Recording).HAR)
}

// prompts prints the calls of language models in a record.
func prompts(ctx context.Context, env *tool.Env) error {
	return project(ctx, env, (*exchange.Recording).Prompts)
}

// project reads a record, checks its bodies, and prints what is made of it.
func project(ctx context.Context, env *tool.Env, print func(*exchange.Recording, io.Writer) error) error {
	record, err := env.One("the record, a directory or archive", "runner-net "+env.Command+" RECORD")
	if err != nil {
		return err
	}
	r, done, err := recording(ctx, env, record)
	if err != nil {
		return err
	}
	defer done()
	w := bufio.NewWriter(env.Stdout)
	if err := print(r, w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return tool.CannotWrite("standard output", err)
	}
	return nil
}
