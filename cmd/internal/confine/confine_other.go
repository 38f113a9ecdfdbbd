//go:build !linux

package confine

import "errors"

var errLinux = errors.New("this needs Linux")

func (c *Confinement) check() error { return errLinux }

func (c *Confinement) start(func() error) error { return cannot(errLinux) }
