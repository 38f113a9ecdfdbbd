//go:build !linux

package confine

import (
	"errors"

	"github.com/runner-evidence/runner/schemas"
)

var errLinux = errors.New("this needs Linux")

func (c *Confinement) check() error { return errLinux }

func (c *Confinement) start(func() error) error { return cannot(errLinux) }

type namespace struct{}

func takeNamespace(*schemas.ReadyNamespace) (*namespace, error) { return nil, errLinux }

func (*namespace) close() {}
