package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// reaching are capabilities with which root reaches the kernel, devices, clocks, the
// network's configuration and the order in which processes run.
var reaching = []int{
	unix.CAP_SYS_ADMIN, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_BOOT, unix.CAP_SYS_TIME, unix.CAP_SYS_NICE, unix.CAP_SYS_PACCT,
	unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_CHECKPOINT_RESTORE, unix.CAP_NET_ADMIN, unix.CAP_MKNOD, unix.CAP_SYSLOG, unix.CAP_AUDIT_CONTROL,
	unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE,
}

// leaving are capabilities with which root reaches another network namespace, or changes its own.
var leaving = []int{
	unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_CHECKPOINT_RESTORE, unix.CAP_NET_ADMIN, unix.CAP_MKNOD,
}

// taken are the capabilities that a hardened program does not have. Without a domain it
// also loses the right to trace: then the kernel lets it reach only processes that have
// no more rights than itself.
func taken(abi int) []int {
	if abi >= abiRefer {
		return reaching
	}
	return append([]int{unix.CAP_SYS_PTRACE}, reaching...)
}

// drop takes the capabilities away from the calling thread. With no_new_privs no exec
// gives them back.
func drop(away []int) error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return fmt.Errorf("reading the capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clearing the ambient capabilities: %w", err)
	}
	bounds := may(&data, unix.CAP_SETPCAP)
	for _, c := range away {
		if bounds {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && err != unix.EINVAL { // a later kernel's
				return fmt.Errorf("dropping capability %d: %w", c, err)
			}
		}
		word, bit := c/32, uint32(1)<<(c%32)
		data[word].Effective &^= bit
		data[word].Permitted &^= bit
		data[word].Inheritable &^= bit
	}
	if err := unix.Capset(&head, &data[0]); err != nil {
		return fmt.Errorf("giving up capabilities: %w", err)
	}
	return nil
}

// lastCap is above all capabilities that there are or will be: the sets have 64 bits.
const lastCap = 63

// dropAll takes all capabilities away from the calling thread and what it starts. With switches it keeps, until it
// becomes another user than root, those two with which it can.
func dropAll(switches bool) error {
	var all []int
	for c := range lastCap + 1 {
		if !switches || c != unix.CAP_SETUID && c != unix.CAP_SETGID {
			all = append(all, c)
		}
	}
	if switches { // these two are no more in the bounding set either
		for _, c := range []uintptr{unix.CAP_SETUID, unix.CAP_SETGID} {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
				return fmt.Errorf("dropping capability %d: %w", c, err)
			}
		}
	}
	return drop(all)
}

// may reports whether a capability is effective.
func may(data *[2]unix.CapUserData, c int) bool { return data[c/32].Effective>>(c%32)&1 != 0 }

// mayAdminister reports whether this thread has CAP_SYS_ADMIN.
func mayAdminister() bool { return MayAdminister(0) }

// MayAdminister reports whether the main thread of a process, or with 0 the calling thread,
// has CAP_SYS_ADMIN.
func MayAdminister(pid int) bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3, Pid: int32(pid)}
	var data [2]unix.CapUserData
	return unix.Capget(&head, &data[0]) == nil && may(&data, unix.CAP_SYS_ADMIN)
}
