// Package confine takes rights away from one thread and starts a program on it: the
// program and all its descendants inherit what the thread lost, and the tool's other
// threads keep their rights. No helper process is needed. It also says which file rules
// the mechanisms that work so can enforce.
package confine

import (
	"errors"
	"fmt"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Confinement is what a program is started without. The zero value takes nothing away.
type Confinement struct {
	// NoNewPrivs: an exec gives no rights that the caller lacks, such as set-user-id.
	NoNewPrivs bool
	// Harden refuses the calls with which a program attacks its observer (calls_linux.go),
	// sets NoNewPrivs, takes capabilities away and makes the files of the kernel
	// read-only. Where Landlock is there, it also closes the way to processes outside:
	// ptrace, /proc/PID/mem, signals.
	Harden bool
	// Boxed is for a program in a box whose process 1 is ours: it loses all capabilities, and the
	// calls are refused with which it could leave the box or end that process (calls_linux.go).
	// It sets NoNewPrivs.
	Boxed bool
	// Netted is for a program in a network namespace of its own: it loses the capabilities with
	// which it could leave that, and setns is refused. It sets NoNewPrivs.
	Netted bool
	// Switches says that a Boxed or Netted program is started as another user, which needs two
	// capabilities until then.
	Switches bool
	// Cloned says that the program is started by clone3, as one in a cgroup is.
	Cloned bool

	layer     *schemas.LandlockLayer // of file rules, or nil
	namespace *namespace             // with the mounts of file rules, or nil
	mounts    bool                   // the files of the kernel are made read-only
	inForce   []string
}

// Any reports whether anything is taken away.
func (c *Confinement) Any() bool {
	return c.NoNewPrivs || c.Harden || c.Boxed || c.Netted || c.layer != nil || c.namespace != nil
}

// InForce names what is taken away on this system, in the order of schemas.Confinements.
// Check finds it out.
func (c *Confinement) InForce() []string { return c.inForce }

// Check finds out whether and how the confinement works here. Nothing may be started
// before.
func (c *Confinement) Check() error {
	c.inForce = nil
	if !c.Any() {
		return nil
	}
	if err := c.check(); err != nil {
		return cannot(err)
	}
	return nil
}

// Require adds what runner-capture asks for, and checks again.
func (c *Confinement) Require(r *schemas.Ready) (err error) {
	c.layer = r.Landlock
	if r.Namespace != nil {
		if c.namespace, err = takeNamespace(r.Namespace); err != nil {
			return cannot(err)
		}
	}
	return c.Check()
}

// Close gives back what Require took. The run must be over: nothing may wait for the
// listener any more.
func (c *Confinement) Close() {
	if c.namespace != nil {
		c.namespace.close()
	}
}

// Start calls start, which starts a program, on a thread without these rights.
func (c *Confinement) Start(start func() error) error {
	if !c.Any() {
		return start()
	}
	return c.start(start)
}

// note adds what is in force.
func (c *Confinement) note(names ...string) {
	for _, known := range schemas.Confinements {
		for _, name := range names {
			if name == known.Name {
				c.inForce = append(c.inForce, name)
			}
		}
	}
}

// cannot is the error of a confinement that does not work here.
func cannot(err error) error {
	var coded *tool.Error
	if errors.As(err, &coded) {
		return err
	}
	return tool.Fail(tool.ExitCannot, fmt.Errorf("cannot confine the command here: %w", err))
}
