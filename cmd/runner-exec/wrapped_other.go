//go:build !linux

package main

import "github.com/runner-evidence/runner/cmd/internal/child"

// startWrapped is start: without namespaces and cgroups a wrapper is a command like any other.
func (s *supervisor) startWrapped(o child.Options) (*child.Process, error) { return child.Start(o) }

func (s *supervisor) wrappedEnd(e child.Ending) (child.Ending, error) { return e, nil }
