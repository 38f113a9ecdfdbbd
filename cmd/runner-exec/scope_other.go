//go:build !linux

package main

import (
	"errors"
	"os"
	"time"
)

// scope is a cgroup; there are none here.
type scope struct{ path string }

func newScope(string, string) (*scope, error) { return nil, errors.ErrUnsupported }

func (s *scope) strike() error              { return errors.ErrUnsupported }
func (s *scope) remove(time.Duration) error { return errors.ErrUnsupported }
func (s *scope) taken()                     {}
func (s *scope) close()                     {}
func widen(*os.File)                        {}
func widenFD(uintptr)                       {}

func (s *scope) empty() error { return errors.ErrUnsupported }
