//go:build !linux

package main

import (
	"errors"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// scope would be a cgroup; only Linux has them.
type scope struct{ path, at string }

func newScope(string, string, *tool.Env) (*scope, error) { return nil, errors.ErrUnsupported }

func (s *scope) killAll() error             { return errors.ErrUnsupported }
func (s *scope) remove(time.Duration) error { return errors.ErrUnsupported }
func (s *scope) taken()                     {}
func (s *scope) close()                     {}
func (s *scope) exists() bool               { return false }

func (s *scope) empty() error { return errors.ErrUnsupported }
