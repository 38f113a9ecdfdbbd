//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The few structures of io_uring (include/uapi/linux/io_uring.h) that one call needs.
type uringEntry struct {
	opcode, flags uint8
	prio          uint16
	fd            int32
	off, addr     uint64
	len, opFlags  uint32
	user          uint64
	rest          [3]uint64
}

type uringParams struct {
	sqEntries, cqEntries, flags, sqCPU, sqIdle, features, wqFD uint32
	_                                                          [3]uint32
	sq                                                         struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

type uringQueue struct {
	fd              int
	p               uringParams
	sq, cq, entries []byte
}

func newUring() (*uringQueue, error) {
	u := new(uringQueue)
	fd, _, e := syscall.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&u.p)), 0)
	if e != 0 {
		return nil, fmt.Errorf("io_uring is not there: %w", e)
	}
	u.fd = int(fd)
	var err error
	const rw, shared = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if u.sq, err = unix.Mmap(u.fd, 0, int(u.p.sq.array+4*u.p.sqEntries), rw, shared); err != nil {
		return nil, err
	}
	if u.cq, err = unix.Mmap(u.fd, 0x8000000, int(u.p.cq.cqes+16*u.p.cqEntries), rw, shared); err != nil {
		return nil, err
	}
	u.entries, err = unix.Mmap(u.fd, 0x10000000, int(64*u.p.sqEntries), rw, shared)
	return u, err
}

func (u *uringQueue) close() { unix.Close(u.fd) }

func word(b []byte, at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&b[at])) }

// do makes one call and waits for its result.
func (u *uringQueue) do(e uringEntry) error {
	if err := u.submit(e, 1); err != nil {
		return err
	}
	head := atomic.LoadUint32(word(u.cq, u.p.cq.head))
	for atomic.LoadUint32(word(u.cq, u.p.cq.tail)) == head {
		runtime.Gosched()
	}
	at := u.p.cq.cqes + 16*(head&*word(u.cq, u.p.cq.mask))
	res := int32(*word(u.cq, at+8))
	atomic.StoreUint32(word(u.cq, u.p.cq.head), head+1)
	if res < 0 {
		return syscall.Errno(-res)
	}
	return nil
}

// submit makes one call, and waits for so many results.
func (u *uringQueue) submit(e uringEntry, wait uintptr) error {
	tail := atomic.LoadUint32(word(u.sq, u.p.sq.tail))
	i := tail & *word(u.sq, u.p.sq.mask)
	*(*uringEntry)(unsafe.Pointer(&u.entries[64*i])) = e
	*word(u.sq, u.p.sq.array+4*i) = i
	atomic.StoreUint32(word(u.sq, u.p.sq.tail), tail+1)
	if _, _, no := syscall.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(u.fd), 1, wait, wait, 0, 0); no != 0 {
		return fmt.Errorf("io_uring_enter: %w", no)
	}
	return nil
}

// uring makes a call through io_uring, in line or (async) by a worker.
func (c call) uring(fd int, to []byte) error {
	u, err := newUring()
	if err != nil {
		return err
	}
	defer u.close()
	e := uringEntry{fd: int32(fd), addr: uint64(uintptr(unsafe.Pointer(&to[0]))), off: uint64(len(to))}
	m := message(to, nil)
	switch c.Do {
	case "uring connect":
		e.opcode = 16
	case "uring async connect":
		e.opcode, e.flags = 16, 1<<4
	case "uring sendmsg":
		e.opcode, e.off, e.addr, e.len = 9, 0, uint64(uintptr(unsafe.Pointer(m))), 1
	case "uring bind":
		e.opcode = 56
	default:
		return fmt.Errorf("no call %q", c.Do)
	}
	err = u.do(e)
	runtime.KeepAlive(m)
	runtime.KeepAlive(to)
	return err
}
