package confine

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// check chooses what this kernel has. What was asked for and is not there is an error.
func (c *Confinement) check() error {
	var names []string
	if c.gainsNothing() {
		names = append(names, schemas.ConfinedNoNewPrivs)
	}
	if c.layer != nil {
		names = append(names, schemas.ConfinedLandlock)
	}
	if c.namespace != nil {
		names = append(names, schemas.ConfinedNamespace)
	}
	c.mounts = c.Harden && c.tryProtect()
	if c.mounts {
		names = append(names, schemas.ConfinedKernelFiles)
	}
	if c.Harden || c.Boxed || c.Netted {
		names = append(names, schemas.ConfinedCapabilities)
	}
	if _, filtered := c.refused(); filtered {
		if err := canFilter(); err != nil {
			return fmt.Errorf("seccomp filters: %w", err)
		}
		names = append(names, schemas.ConfinedSeccomp)
	}
	if c.domain() {
		abi := LandlockABI()
		if abi >= abiRefer {
			names = append(names, schemas.ConfinedDomain)
		} else if c.namespace != nil {
			return errNoDomain
		}
		if abi >= abiScope && c.Harden {
			names = append(names, schemas.ConfinedSignals)
		}
	}
	c.note(names...)
	return nil
}

// errNoDomain: without the domain, /proc/PID/root of a process outside leads around the
// mounts.
var errNoDomain = fmt.Errorf("a mount namespace holds only together with Landlock, ABI %d or later (Linux 5.19)", abiRefer)

// HasDomain is nil if the way around the command's own mounts can be closed here.
func HasDomain() error {
	if LandlockABI() < abiRefer {
		return errNoDomain
	}
	return canFilter()
}

// gainsNothing reports whether no_new_privs is set: because it was asked for, or because
// a process without CAP_SYS_ADMIN may not restrict itself otherwise.
func (c *Confinement) gainsNothing() bool {
	return c.NoNewPrivs || c.Harden || c.Boxed || c.Netted || c.layer != nil && !mayAdminister()
}

// refused is what the filter refuses, if there is one.
func (c *Confinement) refused() (set callSet, any bool) {
	set = callSet{limits: c.Harden, typing: c.Harden || c.Boxed, init: c.Boxed}
	if c.Harden {
		set.calls = append(set.calls, observing...)
	} else if c.Boxed {
		set.calls = append(set.calls, boxing...)
	}
	if any = c.Harden || c.Boxed || c.namespace != nil; any {
		set.calls = append(set.calls, placing...)
	} else if c.Netted {
		set.calls, any = []call{callEnter}, true
	}
	return set, any
}

// domain reports whether the program is put into a Landlock domain of its own, which closes the way
// to processes outside and keeps the mounts.
func (c *Confinement) domain() bool { return c.Harden || c.namespace != nil }

// tryProtect reports whether the files of the kernel can be made read-only here. It is
// tried on a thread that ends then.
func (c *Confinement) tryProtect() bool {
	if !mayAdminister() {
		return false // and cannot write them
	}
	return OnThread(func() error {
		if c.namespace != nil {
			if err := c.namespace.enter(); err != nil {
				return err
			}
		}
		return protect(c.namespace == nil)
	}) == nil
}

// start takes the rights away and calls start on the same thread.
func (c *Confinement) start(start func() error) error {
	return OnThread(func() error {
		clones, err := c.apply()
		if err != nil {
			return cannot(err)
		}
		if clones == nil {
			return start()
		}
		return clones.serve(start)
	})
}

// apply takes the rights away from the calling thread. The result answers the thread's
// own clone3, if the filter stops it.
func (c *Confinement) apply() (*cloneListener, error) {
	if c.namespace != nil {
		if err := c.namespace.enter(); err != nil {
			return nil, err
		}
	}
	if c.mounts {
		if err := protect(c.namespace == nil); err != nil {
			return nil, err
		}
	}
	if c.gainsNothing() {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return nil, fmt.Errorf("setting no_new_privs: %w", err)
		}
	}
	if c.layer != nil {
		layer, err := rulesetOf(c.layer)
		if err == nil {
			err = restrict(layer)
		}
		if err != nil {
			return nil, err
		}
	}
	set, filtered := c.refused()
	if !filtered {
		return nil, nil
	}
	abi := LandlockABI()
	if c.domain() && abi >= abiRefer {
		if err := restrict(domain(abi, c.Harden)); err != nil {
			return nil, err
		}
	}
	switch {
	case c.Boxed:
		if err := dropAll(c.Switches); err != nil {
			return nil, err
		}
	case c.Netted:
		if err := drop(leaving); err != nil {
			return nil, err
		}
	case c.Harden:
		if err := drop(taken(abi)); err != nil {
			return nil, err
		}
	}
	return filter(set, c.Cloned)
}

// OnThread calls f on a thread that runs nothing else and ends with f. It is never the
// main thread: what /proc shows of the process is that one's.
func OnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			done <- OnThread(f) // while this goroutine waits, no other one gets the main thread
			runtime.UnlockOSThread()
			return
		}
		done <- f()
	}()
	return <-done
}
