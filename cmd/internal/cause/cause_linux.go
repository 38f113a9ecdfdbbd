// Package cause finds out why a kernel cannot be observed, and says what to type.
package cause

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
)

// Kind is what the caller knows of an error.
type Kind int

// The kinds of errors.
const (
	Other    Kind = iota
	Verifier      // the kernel's verifier refused a program
	TooOld        // the kernel lacks something that nothing replaces; the error names it
)

// Machine is what decides whether a kernel can be observed.
type Machine struct {
	Release  string   // of the kernel
	Root     bool     // the effective user is 0
	Nested   bool     // in a user namespace: its root has no rights over the kernel
	Missing  []string // capabilities that this process needs and does not have
	BTF      bool     // the kernel describes its types
	Lockdown string   // none, integrity, confidentiality, or "" if that cannot be found out
}

// What to type. The first three are for users without the rights.
const (
	asRoot      = "as root: sudo runner-exec -- COMMAND"
	asUser      = `or once: sudo setcap cap_bpf,cap_perfmon,cap_net_admin+ep "$(command -v runner-capture)", and a cgroup of your own: systemd-run --user --scope -p Delegate=yes runner-exec -- COMMAND`
	asUserPlain = `or, without systemd, a cgroup that is yours: sudo mkdir DIR && sudo chown -R "$USER" DIR && echo $$ | sudo tee DIR/cgroup.procs, with DIR on the cgroup2 mount`
	noKernel    = "without the kernel layer (the archive then says so): runner-exec --no-kernel -- COMMAND"
)

// OwnCgroup is what to type in a shell whose cgroup belongs to somebody else.
const OwnCgroup = "start it in a cgroup that is yours: systemd-run --user --scope -p Delegate=yes runner-exec -- COMMAND"

// Of returns the cause behind an error that observing failed with, and the hints. What is
// known of the machine comes first: whatever fails then, and however the loader words it,
// that is the reason.
//
//lint:ignore ST1008 the cause is the answer, not a failure to find it
func (m Machine) Of(err error, kind Kind) (cause error, hints []string) {
	refused := errors.Is(err, unix.EPERM) || errors.Is(err, fs.ErrPermission) && kind != Verifier
	switch {
	case errors.Is(err, cgroup.ErrNoMount):
		return err, []string{"mount one, v1 can stay as it is: sudo mkdir -p /run/cgroup2 && sudo mount -t cgroup2 cgroup2 /run/cgroup2", noKernel}
	case len(m.Missing) > 0 && m.Nested:
		return m.nested(), []string{"start it outside of the container or namespace, as its root", noKernel}
	case len(m.Missing) > 0:
		return fmt.Errorf("this process lacks %s", strings.Join(m.Missing, ", ")), m.rights("root is not enough here: a container needs --cap-add=BPF,PERFMON,NET_ADMIN and a seccomp profile that allows bpf()")
	case !m.BTF:
		return errors.New("this kernel does not describe its types (/sys/kernel/btf/vmlinux)"),
			[]string{"use a kernel with CONFIG_DEBUG_INFO_BTF=y, and mount /sys: grep DEBUG_INFO_BTF /boot/config-$(uname -r)", noKernel}
	case m.Lockdown == lockedDown:
		return errors.New("this kernel is locked down: lockdown=confidentiality lets no program read its memory"),
			[]string{"boot with lockdown=integrity, or without: cat /sys/kernel/security/lockdown", noKernel}
	case kind == TooOld:
		return err, []string{fmt.Sprintf("use Linux 5.15 or later; this is %s", m.Release), noKernel}
	case kind == Verifier:
		return err, []string{fmt.Sprintf("the verifier of Linux %s refuses a probe; all that it says, for a report: runner-capture --probe -v", m.Release), noKernel}
	case refused && m.Nested:
		return m.nested(), []string{"start it outside of the container or namespace, as its root", noKernel}
	case refused:
		return withoutAdvice(err), m.rights("root is not enough here: a seccomp filter, a security module or a read-only mount refuses it")
	}
	return withoutAdvice(err), []string{noKernel}
}

func (m Machine) nested() error {
	return errors.New("this process has its rights only in a user namespace: the kernel gives BPF to none of those")
}

// rights are the hints for missing rights. What a user would do, root has done.
func (m Machine) rights(root string) []string {
	if m.Root {
		return []string{root, noKernel}
	}
	return []string{asRoot, asUser, asUserPlain, noKernel}
}

// withoutAdvice removes what the loader library guesses about limits of memory: kernels that
// have such limits are too old in any case.
func withoutAdvice(err error) error {
	before, after, ok := strings.Cut(err.Error(), " (MEMLOCK")
	if !ok {
		return err
	}
	_, after, _ = strings.Cut(after, ")")
	return &reworded{before + after, err}
}

type reworded struct {
	text string
	err  error
}

func (r *reworded) Error() string { return r.text }
func (r *reworded) Unwrap() error { return r.err }
