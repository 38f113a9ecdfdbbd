package confine

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// namespace is a mount namespace that runner-capture made, as descriptors of our own.
type namespace struct{ mount, root, cwd, listener int }

// takeNamespace copies the descriptors of runner-capture.
func takeNamespace(n *schemas.ReadyNamespace) (*namespace, error) {
	pidfd, err := unix.PidfdOpen(int(n.Process), 0)
	if err != nil {
		return nil, fmt.Errorf("finding runner-capture: %w", err)
	}
	defer unix.Close(pidfd)
	ns := &namespace{-1, -1, -1, -1}
	for _, d := range []struct {
		to   *int
		from uint64
	}{{&ns.mount, n.Mount}, {&ns.root, n.Root}, {&ns.cwd, n.Cwd}, {&ns.listener, n.Listener}} {
		if *d.to, err = unix.PidfdGetfd(pidfd, int(d.from), 0); err != nil {
			ns.close()
			return nil, fmt.Errorf("taking the mount namespace from runner-capture: %w", err)
		}
	}
	return ns, nil
}

func (n *namespace) close() {
	for _, fd := range []int{n.mount, n.root, n.cwd, n.listener} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// enter puts the calling thread into the namespace, with the root and the working
// directory that the process has outside.
func (n *namespace) enter() error {
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"leaving the shared working directory", func() error { return unix.Unshare(unix.CLONE_FS) }},
		{"entering the mount namespace", func() error { return unix.Setns(n.mount, unix.CLONE_NEWNS) }},
		{"entering its root", func() error { return unix.Fchdir(n.root) }},
		{"taking its root", func() error { return unix.Chroot(".") }},
		{"entering the working directory", func() error { return unix.Fchdir(n.cwd) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}
