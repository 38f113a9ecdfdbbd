package confine

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

// TestKernelFiles: a hardened program cannot write the files of the kernel, and can write
// those of its own processes; the mounts of others stay as they were.
func TestKernelFiles(t *testing.T) {
	c := &Confinement{Harden: true}
	testkit.Must(t, c.Check())
	if !mayAdminister() {
		testkit.Missing(t, "what a hardened program cannot do", "needs CAP_SYS_ADMIN")
	}
	if !slices.Contains(c.InForce(), schemas.ConfinedKernelFiles) {
		t.Fatalf("in force is only %q", c.InForce())
	}
	before, err := os.ReadFile("/proc/self/mountinfo")
	testkit.Must(t, err)
	for _, file := range []string{"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity"} {
		if out := run(t, c, "(exec 3>>"+file+" && echo open)"); !strings.Contains(out, "Read-only") && !strings.Contains(out, "nonexistent") {
			t.Errorf("%s: %q", file, out)
		}
	}
	all, err := places()
	testkit.Must(t, err)
	tried := 0
	for _, p := range all {
		if p.kind != "proc" && slices.Contains(kernelTypes, p.kind) && !strings.ContainsAny(p.at, " '\\") {
			if out := run(t, c, "(mkdir '"+p.at+"/runner-test' && rmdir '"+p.at+"/runner-test')"); !strings.Contains(out, "Read-only") {
				t.Errorf("%s, %s: %q", p.kind, p.at, out)
			}
			tried++
		}
	}
	if tried == 0 {
		t.Error("no other file system of the kernel is mounted")
	}
	out := run(t, c, "(cd /proc/self; echo 77 >oom_score_adj; cat oom_score_adj; printf name >comm; cat comm; : >/dev/stdout; [ -e /proc/$PPID/stat ] && echo there)")
	if out != "77\nname\n" {
		t.Errorf("its own files: %q", out)
	}
	if out := run(t, c, "(cd /proc/sys/kernel && exec 3>core_pattern)"); !strings.Contains(out, "Read-only") {
		t.Errorf("relative to a directory of /proc: %q", out)
	}
	after, err := os.ReadFile("/proc/self/mountinfo")
	if testkit.Must(t, err); string(before) != string(after) {
		t.Errorf("the mounts of the tool were\n%s\nand are\n%s", before, after)
	}
}

// TestWorkingDirectory: a program that starts in /proc is in its own one.
func TestWorkingDirectory(t *testing.T) {
	if !mayAdminister() {
		testkit.Missing(t, "what a hardened program cannot do", "needs CAP_SYS_ADMIN")
	}
	t.Chdir("/proc/sys/kernel")
	if out := run(t, &Confinement{Harden: true}, "(exec 3>core_pattern)"); !strings.Contains(out, "Read-only") {
		t.Errorf("%q", out)
	}
}

// TestCapabilities: what is taken away does not come back, and the tool keeps it.
func TestCapabilities(t *testing.T) {
	if !mayAdminister() {
		testkit.Missing(t, "what a hardened program cannot do", "needs CAP_SYS_ADMIN")
	}
	dir := t.TempDir()
	out := run(t, &Confinement{Harden: true}, "(grep CapEff /proc/self/status; grep CapBnd /proc/self/status; (exec 3</dev/mem); mknod "+dir+"/x c 1 1)")
	for line := range strings.Lines(out) {
		name, value, ok := strings.Cut(line, ":\t")
		if !ok || !strings.HasPrefix(name, "Cap") {
			continue
		}
		var bits uint64
		for _, c := range strings.TrimSpace(value) {
			bits = bits<<4 | uint64(strings.IndexRune("0123456789abcdef", c))
		}
		if bits == 0 {
			t.Errorf("%s is empty", name)
		}
		for _, c := range reaching {
			if bits>>c&1 != 0 {
				t.Errorf("%s has capability %d", name, c)
			}
		}
	}
	if strings.Count(out, "Cap") < 2 || !strings.Contains(out, "mknod") {
		t.Errorf("%q", out)
	}
	if _, err := os.Stat("/dev/mem"); err == nil && !strings.Contains(out, "/dev/mem: Operation not permitted") {
		t.Errorf("/dev/mem: %q", out)
	}
	testkit.Await(t, "the end of the thread without capabilities", func() bool {
		values := statuses(t, "CapEff")
		return !slices.ContainsFunc(values, func(v string) bool { return v != values[0] })
	})
}
