package cause

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/cgroup"
)

func TestOf(t *testing.T) {
	refusal := fmt.Errorf("map create: %w (MEMLOCK may be too low, consider rlimit.RemoveMemlock)", unix.EPERM)
	verifier := fmt.Errorf("program on_exec: load program: %w: math between ptr_ pointer", unix.EACCES)
	well := Machine{Release: "6.12.1", Root: true, BTF: true, Lockdown: "none"}
	with := func(change func(*Machine)) Machine {
		m := well
		change(&m)
		return m
	}
	for _, c := range []struct {
		name        string
		m           Machine
		err         error
		kind        Kind
		cause, hint string
	}{
		{"v1 only", well, fmt.Errorf("finding it: %w", cgroup.ErrNoMount), Other, "no cgroup v2 hierarchy is mounted", "mount -t cgroup2"},
		{"v1 only, a user", with(func(m *Machine) { m.Root, m.Missing = false, []string{"CAP_BPF"} }), cgroup.ErrNoMount, Other, "no cgroup v2", "mount -t cgroup2"},
		{"a user", with(func(m *Machine) { m.Root, m.Missing = false, []string{"CAP_BPF", "CAP_PERFMON"} }), refusal, Other, "this process lacks CAP_BPF, CAP_PERFMON", "sudo runner-exec"},
		{"root with fewer capabilities", with(func(m *Machine) { m.Missing = []string{"CAP_BPF"} }), refusal, Other, "this process lacks CAP_BPF", "--cap-add=BPF"},
		{"root of a namespace", with(func(m *Machine) { m.Nested = true }), refusal, Other, "only in a user namespace", "outside of the container"},
		{"few rights in a namespace", with(func(m *Machine) { m.Nested, m.Missing = true, []string{"CAP_BPF"} }), refusal, Other, "only in a user namespace", "outside of the container"},
		{"no BTF", with(func(m *Machine) { m.BTF = false }), errors.New("reading the kernel's types: not found"), Other, "does not describe its types", "CONFIG_DEBUG_INFO_BTF=y"},
		{"confidentiality", with(func(m *Machine) { m.Lockdown = "confidentiality" }), verifier, Verifier, "lockdown=confidentiality", "lockdown=integrity"},
		{"5.10", with(func(m *Machine) { m.Release = "5.10.0-1" }), errors.New("this kernel has no helper bpf_x (Linux 5.13)"), TooOld, "this kernel has no helper bpf_x (Linux 5.13)", "5.15 or later; this is 5.10.0-1"},
		{"a verifier", well, verifier, Verifier, verifier.Error(), "runner-capture --probe -v"},
		{"a verifier, with integrity", with(func(m *Machine) { m.Lockdown = "integrity" }), verifier, Verifier, verifier.Error(), "The verifier of Linux 6.12.1"},
		{"refused", well, refusal, Other, "map create: operation not permitted", "root is not enough here: a seccomp filter"},
		{"a directory", with(func(m *Machine) { m.Root = false }), fmt.Errorf("making the cgroup: %w", unix.EACCES), Other, "making the cgroup: permission denied", "Delegate=yes"},
		{"all else", well, errors.New("no space"), Other, "no space", "--no-kernel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cause, hints := c.m.Of(c.err, c.kind)
			text := strings.Join(hints, "\n")
			if !strings.Contains(cause.Error(), c.cause) || !strings.Contains(strings.ToLower(text), strings.ToLower(c.hint)) {
				t.Errorf("cause %q, expected %q; hints %q, expected %q", cause, c.cause, hints, c.hint)
			}
			if strings.Contains(cause.Error(), "MEMLOCK") {
				t.Errorf("the cause speaks of a limit: %q", cause)
			}
			if as := strings.Contains(text, "sudo runner-exec"); c.m.Root && as {
				t.Errorf("root is told to be root: %q", hints)
			}
			if !slices.Contains(hints, noKernel) {
				t.Errorf("the hints do not say what works in any case: %q", hints)
			}
			if errors.Is(c.err, unix.EPERM) && c.name == "refused" && !errors.Is(cause, unix.EPERM) {
				t.Errorf("the error behind %v is lost", cause)
			}
		})
	}
}

func TestMachine(t *testing.T) {
	for _, c := range []struct{ file, cmdline, want string }{
		{"none [integrity] confidentiality\n", "lockdown=confidentiality", "integrity"}, {"none integrity [confidentiality]\n", "", "confidentiality"},
		{"", "quiet lockdown=integrity lockdown=confidentiality panic=-1\n", "confidentiality"}, {"", "quiet\n", ""},
	} {
		if got := lockdown(c.file, c.cmdline); got != c.want {
			t.Errorf("lockdown(%q, %q) is %q, expected %q", c.file, c.cmdline, got, c.want)
		}
	}
	for text, want := range map[string]bool{"         0          0 4294967295\n": false, "0 1000 1\n": true, "": false, "1 1 4294967294": true} {
		if nested(text) != want {
			t.Errorf("nested(%q) is %v", text, !want)
		}
	}
	for status, want := range map[string][]string{
		"Name:\tx\nCapEff:\t000001ffffffffff\n": nil, "CapEff:\t0000000000000000\n": {"CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"},
		"CapEff:\t0000000000200000\n": {"CAP_NET_ADMIN"}, "CapEff:\t000000c000001000\n": nil, "no such line\n": nil,
	} {
		if got := missing(status); !slices.Equal(got, want) {
			t.Errorf("missing(%q) is %q, expected %q", status, got, want)
		}
	}
	if m := Here(true); m.Release == "" || m.Root != (os.Geteuid() == 0) {
		t.Errorf("%+v", m)
	}
}
