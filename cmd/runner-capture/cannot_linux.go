package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf"
	"github.com/runner-evidence/runner/cmd/internal/cgroup"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// setUp is what to type where the rights are missing.
var setUp = []string{
	"as root: sudo runner-exec -- COMMAND",
	"or once: sudo setcap cap_bpf,cap_perfmon,cap_net_admin+ep \"$(command -v runner-capture)\", and a cgroup of your own: systemd-run --user --scope -p Delegate=yes runner-exec -- COMMAND",
	"or without the kernel layer: runner-exec --no-kernel -- COMMAND",
}

// missingCapabilities names the capabilities that capture needs and the process
// does not have (capabilities(7); CAP_SYS_ADMIN includes the first two).
func missingCapabilities() []string {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	var have uint64
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "CapEff:"); ok {
			fmt.Sscanf(strings.TrimSpace(v), "%x", &have)
		}
	}
	var missing []string
	for _, c := range []struct {
		name  string
		bit   int
		admin bool
	}{{"CAP_BPF", unix.CAP_BPF, true}, {"CAP_PERFMON", unix.CAP_PERFMON, true}, {"CAP_NET_ADMIN", unix.CAP_NET_ADMIN, false}} {
		if have&(1<<c.bit) == 0 && !(c.admin && have&(1<<unix.CAP_SYS_ADMIN) != 0) {
			missing = append(missing, c.name)
		}
	}
	return missing
}

// cannot explains why capture does not work here, and what to type.
func cannot(err error) error {
	var hints []string
	if _, e := os.Stat("/sys/kernel/btf/vmlinux"); e != nil {
		hints = append(hints, "this kernel has no BTF (/sys/kernel/btf/vmlinux): it needs CONFIG_DEBUG_INFO_BTF")
	}
	if missing := missingCapabilities(); len(missing) > 0 {
		// No matter what failed first and how the loader explains it, this is the reason.
		err = fmt.Errorf("this process lacks %s", strings.Join(missing, ", "))
		hints = append(hints, setUp...)
	} else if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EPERM) {
		hints = append(hints, setUp...)
	}
	word := "observe"
	if rules := new(*bpf.RulesError); errors.As(err, rules) {
		word = "enforce"
	}
	return tool.Fail(tool.ExitCannot, fmt.Errorf("cannot %s here: %w", word, err), hints...)
}

// probe attaches everything to the caller's own cgroup and detaches it again.
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
