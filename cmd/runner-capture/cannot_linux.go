package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"runner/bpf"
	"runner/cmd/internal/cgroup"
	"runner/cmd/internal/tool"
)

// cannot explains why capture does not work here, and what to type.
func cannot(err error) error {
	var hints []string
	if _, e := os.Stat("/sys/kernel/btf/vmlinux"); e != nil {
		hints = append(hints, "this kernel has no BTF (/sys/kernel/btf/vmlinux): it needs CONFIG_DEBUG_INFO_BTF")
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EPERM) {
		hints = append(hints,
			"as root: sudo runner-exec -- COMMAND",
			"or once: sudo setcap cap_bpf,cap_perfmon,cap_net_admin+ep \"$(command -v runner-capture)\", and a cgroup of your own: systemd-run --user --scope -p Delegate=yes runner-exec -- COMMAND",
			"or without the kernel layer: runner-exec --no-kernel -- COMMAND")
	}
	return tool.Fail(tool.ExitCannot, fmt.Errorf("cannot observe here: %w", err), hints...)
}

// probe attaches everything to the caller's own cgroup and lets go again.
func probe(env *tool.Env) error {
	dir, err := cgroup.Own()
	if err != nil {
		return cannot(err)
	}
	ses, err := bpf.Attach(bpf.Options{Cgroup: dir, RingSize: 1 << 16})
	if err != nil {
		return cannot(err)
	}
	defer ses.Close()
	fmt.Fprintf(env.Stdout, "kernel capture: attached\nio_uring: %s\nunix_hooks: %s\n", ses.IOUring, ses.Unix)
	return nil
}
