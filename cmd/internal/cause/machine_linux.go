package cause

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// lockedDown is the lockdown that forbids reading the kernel's memory.
const lockedDown = "confidentiality"

// Here is the machine that this process runs on. With capture, the process is the one that
// loads BPF, and its capabilities count.
func Here(capture bool) Machine {
	m := Machine{Root: os.Geteuid() == 0, Lockdown: lockdown(read("/sys/kernel/security/lockdown"), read("/proc/cmdline")),
		Nested: nested(read("/proc/self/uid_map"))}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Release = unix.ByteSliceToString(u.Release[:])
	}
	if st, err := os.Stat("/sys/kernel/btf/vmlinux"); err == nil {
		m.BTF = st.Size() > 0
	}
	if capture {
		m.Missing = missing(read("/proc/self/status"))
	}
	return m
}

func read(file string) string {
	b, _ := os.ReadFile(file)
	return string(b)
}

// lockdown reads the file in which the word in force is in brackets. Without it (it needs a
// mount), the kernel's command line.
func lockdown(file, cmdline string) string {
	if _, after, ok := strings.Cut(file, "["); ok {
		word, _, _ := strings.Cut(after, "]")
		return word
	}
	word := ""
	for f := range strings.FieldsSeq(cmdline) {
		if v, ok := strings.CutPrefix(f, "lockdown="); ok {
			word = v
		}
	}
	return word
}

// nested reports whether a uid_map is not that of the first user namespace.
func nested(uidMap string) bool {
	var inside, outside, n uint64
	if _, err := fmt.Sscan(uidMap, &inside, &outside, &n); err != nil {
		return false
	}
	return inside != 0 || outside != 0 || n != 1<<32-1
}

// missing names the capabilities that capture needs and that a process with this status does
// not have (capabilities(7); CAP_SYS_ADMIN includes the first two).
func missing(status string) (names []string) {
	var have uint64
	found := false
	for line := range strings.Lines(status) {
		if v, ok := strings.CutPrefix(line, "CapEff:"); ok {
			_, err := fmt.Sscanf(strings.TrimSpace(v), "%x", &have)
			found = err == nil
		}
	}
	if !found {
		return nil
	}
	for _, c := range []struct {
		name  string
		bit   int
		admin bool
	}{{"CAP_BPF", unix.CAP_BPF, true}, {"CAP_PERFMON", unix.CAP_PERFMON, true}, {"CAP_NET_ADMIN", unix.CAP_NET_ADMIN, false}} {
		if have&(1<<c.bit) == 0 && !(c.admin && have&(1<<unix.CAP_SYS_ADMIN) != 0) {
			names = append(names, c.name)
		}
	}
	return names
}
