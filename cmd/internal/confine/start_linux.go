package confine

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// check chooses what this kernel has. What was asked for and is not there is an error.
func (c *Confinement) check() error {
	names := []string{schemas.ConfinedNoNewPrivs}
	if c.Harden {
		if err := canFilter(); err != nil {
			return fmt.Errorf("seccomp filters: %w", err)
		}
		names = append(names, schemas.ConfinedSeccomp)
		abi := LandlockABI()
		if abi >= abiRefer {
			names = append(names, schemas.ConfinedDomain)
		}
		if abi >= abiScope {
			names = append(names, schemas.ConfinedSignals)
		}
	}
	c.note(names...)
	return nil
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
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("setting no_new_privs: %w", err)
	}
	if !c.Harden {
		return nil, nil
	}
	if abi := LandlockABI(); abi >= abiRefer {
		if err := restrict(domain(abi)); err != nil {
			return nil, err
		}
	}
	return filter(observerCalls(), c.Cloned)
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
