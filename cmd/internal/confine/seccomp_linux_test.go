package confine

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// interpret runs a filter on the data of one call.
func interpret(t *testing.T, p []unix.SockFilter, arch uint32, nr int, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.LittleEndian.PutUint32(data[atNumber:], uint32(nr))
	binary.LittleEndian.PutUint32(data[atArch:], arch)
	for i, a := range args {
		binary.LittleEndian.PutUint64(data[atArgs+8*i:], a)
	}
	var acc uint32
	for pc := 0; pc < len(p); pc++ {
		in := p[pc]
		yes := false
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = binary.LittleEndian.Uint32(data[in.K:])
			continue
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ:
			yes = acc == in.K
		case unix.BPF_JMP | unix.BPF_K | unix.BPF_JGE:
			yes = acc >= in.K
		case unix.BPF_JMP | unix.BPF_K | unix.BPF_JSET:
			yes = acc&in.K != 0
		default:
			t.Fatalf("instruction %d has the code %#x", pc, in.Code)
		}
		if yes {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

// hardened is what --harden refuses.
func hardened() callSet {
	set, _ := (&Confinement{Harden: true}).refused()
	return set
}

// TestFilter: on both architectures and both of their entries, the filter refuses what
// the tables say, and nothing else.
func TestFilter(t *testing.T) {
	set := hardened()
	for goarch, m := range machines {
		p := program(set, goarch, absent)
		if len(p) > 4096 {
			t.Errorf("%s: %d instructions, the kernel takes 4096", goarch, len(p))
		}
		for _, side := range []struct {
			arch   uint32
			native bool
		}{{m.native, true}, {m.compat, false}} {
			number := func(c call) int {
				if n, other := c.numbers(goarch); side.native {
					return n
				} else {
					return other
				}
			}
			refused := map[int]bool{}
			for _, c := range set.calls {
				refused[number(c)] = true
			}
			for nr := range 600 {
				want := uint32(permit)
				if refused[nr] {
					want = refuse
				}
				if nr == number(callClone3) {
					want = absent
				}
				if got := interpret(t, p, side.arch, nr); got != want {
					t.Errorf("%s, native %v, call %d: %#x, expected %#x", goarch, side.native, nr, got, want)
				}
			}
			for _, c := range []struct {
				nr   int
				args []uint64
				want uint32
			}{
				{number(callClone), []uint64{unix.CLONE_VM | unix.CLONE_VFORK | 17}, permit},
				{number(callClone), []uint64{unix.CLONE_NEWUSER | 17}, refuse},
				{number(callShare), []uint64{unix.CLONE_FS | unix.CLONE_NEWPID}, permit},
				{number(callShare), []uint64{unix.CLONE_FS | unix.CLONE_NEWNS}, refuse},
				{number(callLimit), []uint64{0, 7, 1 << 40}, permit},
				{number(callLimit), []uint64{9, 7, 0}, permit},
				{number(callLimit), []uint64{9, 7, 1 << 40}, refuse},
				{number(callLimit), []uint64{9, 7, 8}, refuse},
				{number(callIoctl), []uint64{0, unix.TIOCSTI, 8}, refuse},
				{number(callIoctl), []uint64{0, tioclinux | 1<<32, 8}, refuse},
				{number(callIoctl), []uint64{0, unix.TCGETS, 8}, permit},
			} {
				if got := interpret(t, p, side.arch, c.nr, c.args...); got != c.want {
					t.Errorf("%s, native %v, call %d %v: %#x, expected %#x", goarch, side.native, c.nr, c.args, got, c.want)
				}
			}
		}
		if got := interpret(t, p, 1, 0); got != refuse {
			t.Errorf("%s, an unknown architecture: %#x", goarch, got)
		}
	}
	if got := interpret(t, program(set, "amd64", absent), unix.AUDIT_ARCH_X86_64, x32Bit); got != refuse {
		t.Errorf("an x32 call: %#x", got)
	}
}

// TestNumbers: the table's numbers are those of this architecture.
func TestNumbers(t *testing.T) {
	if _, ok := machines[runtime.GOARCH]; !ok {
		testkit.Missing(t, "no filter on "+runtime.GOARCH)
	}
	for i, nr := range map[call]int{
		observing[0]: unix.SYS_BPF, observing[1]: unix.SYS_PERF_EVENT_OPEN, observing[2]: unix.SYS_IO_URING_SETUP, observing[5]: unix.SYS_PTRACE,
		placing[0]: unix.SYS_MOUNT, placing[2]: unix.SYS_UMOUNT2, placing[12]: unix.SYS_SETNS, placing[13]: unix.SYS_OPEN_BY_HANDLE_AT,
		callClone: unix.SYS_CLONE, callClone3: unix.SYS_CLONE3, callShare: unix.SYS_UNSHARE, callLimit: unix.SYS_PRLIMIT64, callIoctl: unix.SYS_IOCTL,
	} {
		if n, _ := i.numbers(runtime.GOARCH); n != nr {
			t.Errorf("the table has %d, expected %d", n, nr)
		}
	}
}

// TestRefusedCalls: under the filter of the running kernel a refused call fails with
// EPERM, and clone3 does not exist.
func TestRefusedCalls(t *testing.T) {
	testkit.Must(t, OnThread(func() error {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		if _, err := filter(hardened(), false); err != nil {
			return err
		}
		for nr, want := range map[uintptr]unix.Errno{
			unix.SYS_BPF: unix.EPERM, unix.SYS_IO_URING_SETUP: unix.EPERM, unix.SYS_PTRACE: unix.EPERM, unix.SYS_MOUNT: unix.EPERM,
			unix.SYS_CLONE3: unix.ENOSYS, unix.SYS_KEYCTL: unix.EPERM, unix.SYS_GETPPID: 0,
		} {
			if _, _, errno := unix.RawSyscall(nr, 0, 0, 0); errno != want {
				return fmt.Errorf("call %d: %v, expected %v", nr, errno, want)
			}
		}
		return nil
	}))
}
