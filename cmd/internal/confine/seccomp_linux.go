package confine

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// machine is what seccomp calls the architectures of one kernel.
type machine struct{ native, compat uint32 }

var machines = map[string]machine{
	"amd64": {unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_I386},
	"arm64": {unix.AUDIT_ARCH_AARCH64, unix.AUDIT_ARCH_ARM},
}

// Offsets in struct seccomp_data, and the bit of x32 calls.
const (
	atNumber = 0
	atArch   = 4
	atArgs   = 16
	x32Bit   = 0x40000000
)

// tioclinux is the ioctl of consoles that can paste.
const tioclinux = 0x541c

// Actions of a filter.
const (
	permit = unix.SECCOMP_RET_ALLOW
	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	ask    = unix.SECCOMP_RET_USER_NOTIF
)

// canFilter reports why no filter can be set here.
func canFilter() error {
	if _, ok := machines[runtime.GOARCH]; !ok {
		return fmt.Errorf("the numbers of calls are not known on %s", runtime.GOARCH)
	}
	action := uint32(ask)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return fmt.Errorf("this kernel cannot ask about a call (Linux 5.0): %w", errno)
	}
	return nil
}

// program is the filter of a set, in the machine language of classic BPF. A call that
// its arguments decide about is compared before the others. clone3 has its flags in
// memory, where no filter can see them: it does not exist, and C libraries then use
// clone. x32 calls, and those of an unknown architecture, are refused.
func program(set callSet, goarch string, clone3 uint32) []unix.SockFilter {
	m := machines[goarch]
	native, compat := calls(set, goarch, true, clone3), calls(set, goarch, false, clone3)
	p := []unix.SockFilter{
		load(atArch),
		jump(unix.BPF_JEQ, m.native, 3, 0),
		jump(unix.BPF_JEQ, m.compat, 1, 0),
		ret(refuse),
		{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(native))},
	}
	return append(append(p, native...), compat...)
}

// calls is the part of a filter for one architecture.
func calls(set callSet, goarch string, native bool, clone3 uint32) []unix.SockFilter {
	p := []unix.SockFilter{load(atNumber)}
	if native && goarch == "amd64" {
		p = append(p, jump(unix.BPF_JGE, x32Bit, 0, 1), ret(refuse))
	}
	number := func(c call) int {
		n, other := c.numbers(goarch)
		if native {
			return n
		}
		return other
	}
	for _, c := range []call{callClone, callShare} {
		p = append(p, jump(unix.BPF_JEQ, uint32(number(c)), 0, 4),
			load(atArgs), jump(unix.BPF_JSET, newNames, 0, 1), ret(refuse), ret(permit))
	}
	if set.limits { // of another process, and not only read
		p = append(p, jump(unix.BPF_JEQ, uint32(number(callLimit)), 0, 8),
			load(atArgs), jump(unix.BPF_JEQ, 0, 5, 0),
			load(atArgs+16), jump(unix.BPF_JEQ, 0, 0, 2),
			load(atArgs+20), jump(unix.BPF_JEQ, 0, 1, 0),
			ret(refuse), ret(permit))
	}
	if set.typing {
		p = append(p, jump(unix.BPF_JEQ, uint32(number(callIoctl)), 0, 5),
			load(atArgs+8), jump(unix.BPF_JEQ, unix.TIOCSTI, 1, 0), jump(unix.BPF_JEQ, tioclinux, 0, 1), ret(refuse), ret(permit))
	}
	if set.init {
		for _, c := range signalling {
			p = append(p, jump(unix.BPF_JEQ, uint32(number(c)), 0, 4),
				load(atArgs), jump(unix.BPF_JEQ, 1, 0, 1), ret(refuse), ret(permit))
		}
	}
	p = append(p, jump(unix.BPF_JEQ, uint32(number(callClone3)), 0, 1), ret(clone3))
	for _, c := range set.calls {
		if n := number(c); n >= 0 {
			p = append(p, jump(unix.BPF_JEQ, uint32(n), 0, 1), ret(refuse))
		}
	}
	return append(p, ret(permit))
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func jump(op uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | op, K: k, Jt: yes, Jf: no}
}

func ret(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}

// filter refuses the calls to this thread and what it starts. With cloned, the result
// lets the thread's own clone3 pass.
func filter(set callSet, cloned bool) (*cloneListener, error) {
	clone3, flags := uint32(absent), uintptr(0)
	if cloned {
		clone3, flags = ask, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	}
	p := program(set, runtime.GOARCH, clone3)
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(p)
	if errno != 0 {
		err := fmt.Errorf("setting the seccomp filter: %w", errno)
		if errors.Is(errno, unix.EBUSY) {
			err = fmt.Errorf("%w: an outer filter asks a supervisor too", err)
		}
		return nil, err
	}
	if !cloned {
		return nil, nil
	}
	return &cloneListener{fd: int(fd), thread: uint32(unix.Gettid())}, nil
}
