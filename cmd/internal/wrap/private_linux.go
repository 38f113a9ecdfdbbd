package wrap

import "golang.org/x/sys/unix"

// Private are the capabilities that a wrapper's own processes have in a user namespace of their own, until the program is
// started: those that this wrapper or one further in can need.
var Private = []uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_FSETID,
	unix.CAP_KILL, unix.CAP_SETPCAP, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_MKNOD,
}
