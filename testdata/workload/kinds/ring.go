//go:build linux

package main

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// sqe is one submission entry of io_uring(7).
type sqe struct {
	opcode, flags uint8
	ioprio        uint16
	fd            int32
	off, addr     uint64
	len, opFlags  uint32
	userData      uint64
	bufIndex      uint16
	personality   uint16
	slot          int32
	_             [2]uint64
}

type cqe struct {
	userData uint64
	res      int32
	flags    uint32
}

// offsets serves both sides; on the completion side the sixth field is called
// cqes and says where the completions begin.
type offsets struct {
	head, tail, ringMask, ringEntries, flags, dropped, array, resv1 uint32
	userAddr                                                        uint64
}

type ringParams struct {
	sqEntries, cqEntries, flags, threadCPU, threadIdle, features, wqFd uint32
	resv                                                               [3]uint32
	sq, cq                                                             offsets
}

const (
	opConnect   = 16
	opOpenat    = 18
	opOpenat2   = 28
	opRenameat  = 35
	opUnlinkat  = 36
	opMkdirat   = 37
	opSymlinkat = 38
	opLinkat    = 39
	opFtruncate = 55
	largeFile   = 0o100000 // O_LARGEFILE, which Go calls 0 on 64-bit machines
	asyncEntry  = 1 << 4   // IOSQE_ASYNC: a kernel worker does it
)

type uring struct {
	fd      int
	sq, cq  []byte
	entries []byte
	p       ringParams
}

func newRing() (*uring, error) {
	u := new(uring)
	r := made.Call(unix.SYS_IO_URING_SETUP, 8, uintptr(unsafe.Pointer(&u.p)))
	if r < 0 {
		return nil, unix.Errno(-r)
	}
	u.fd = int(r)
	var err error
	size := func(n uint32) int { return int(n) }
	const rw, shared = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if u.sq, err = unix.Mmap(u.fd, 0, size(u.p.sq.array+4*u.p.sqEntries), rw, shared); err != nil {
		return nil, err
	}
	if u.cq, err = unix.Mmap(u.fd, 0x8000000, size(u.p.cq.dropped+16*u.p.cqEntries), rw, shared); err != nil {
		return nil, err
	}
	u.entries, err = unix.Mmap(u.fd, 0x10000000, size(64*u.p.sqEntries), rw, shared)
	return u, err
}

func word(b []byte, off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&b[off])) }

// do submits one entry, waits for its completion and returns the result.
func (u *uring) do(e sqe) int64 {
	tail := atomic.LoadUint32(word(u.sq, u.p.sq.tail))
	i := tail & *word(u.sq, u.p.sq.ringMask)
	*(*sqe)(unsafe.Pointer(&u.entries[64*i])) = e
	*word(u.sq, u.p.sq.array+4*i) = i
	atomic.StoreUint32(word(u.sq, u.p.sq.tail), tail+1)
	made.Must("io_uring_enter", made.Call(unix.SYS_IO_URING_ENTER, uintptr(u.fd), 1, 1, 1, 0, 0))
	head := atomic.LoadUint32(word(u.cq, u.p.cq.head))
	for atomic.LoadUint32(word(u.cq, u.p.cq.tail)) == head {
		runtime.Gosched()
	}
	at := u.p.cq.dropped + 16*(head&*word(u.cq, u.p.cq.ringMask))
	res := (*cqe)(unsafe.Pointer(&u.cq[at])).res
	atomic.StoreUint32(word(u.cq, u.p.cq.head), head+1)
	return int64(res)
}

// ring opens and connects through io_uring, inline and in a worker.
func ring() {
	u, err := newRing()
	if err != nil {
		made.Skipped("io_uring", err)
		return
	}
	defer unix.Close(u.fd)
	// io_uring sets O_LARGEFILE and clears the mode of an open that creates nothing,
	// before a probe sees it. With the same values here, the test can compare them.
	for _, v := range []struct {
		name       string
		flags      uint8
		open, mode uint32
	}{{"M-ring", 0, create | largeFile, 0o640}, {"M-ring-async", asyncEntry, create | largeFile, 0o640},
		{"M-ring-enoent", 0, largeFile, 0}} {
		r := u.do(sqe{opcode: opOpenat, flags: v.flags, fd: cwd, addr: uint64(made.Str(v.name)), len: v.mode, opFlags: v.open})
		made.Line("io_uring_openat", 1, at(v.name), r, made.Flags(uint64(v.open), uint64(v.mode)))
		if r >= 0 {
			unix.Close(int(r))
		}
	}
	how := unix.OpenHow{Flags: create | largeFile, Mode: 0o620, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	r := u.do(sqe{opcode: opOpenat2, fd: cwd, addr: uint64(made.Str(at("M-ring2"))), len: unix.SizeofOpenHow, off: uint64(uintptr(unsafe.Pointer(&how)))})
	runtime.KeepAlive(&how)
	made.Line("io_uring_openat2", 1, at("M-ring2"), r, made.Flags(create|largeFile, 0o620), made.Resolve(unix.RESOLVE_NO_MAGICLINKS))
	unix.Close(int(r))

	addr, stop := listen4("ring")
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	made.Must("socket", made.Ret(err))
	sa := inet4(addr)
	r = u.do(sqe{opcode: opConnect, fd: int32(fd), addr: uint64(uintptr(unsafe.Pointer(&sa))), off: unix.SizeofSockaddrInet4})
	runtime.KeepAlive(&sa)
	made.Line("io_uring_connect", 2, text4(addr), r)
	unix.Close(fd)
	stop()
	u.tree()
}

// ringOther makes io_uring operations that no probe decodes: they must be counted.
func ringOther() {
	u, err := newRing()
	if err != nil {
		made.Skipped("io_uring_other", err)
		return
	}
	defer unix.Close(u.fd)
	fd := openat("setup", cwd, at("M-ring-other"), at("M-ring-other"), create, 0o644)
	r := u.do(sqe{opcode: opFtruncate, fd: int32(fd), off: 23})
	unix.Close(fd)
	if r == -int64(unix.EINVAL) {
		made.Skipped("io_uring_other", unix.EINVAL)
		return
	}
	made.Line("io_uring_other", 240, "", r, made.Null(), made.NoRet())
}

// tree changes names through io_uring.
func (u *uring) tree() {
	s := func(name string) uint64 { return uint64(made.Str(name)) }
	both := func(from, to string) (uint64, uint32, uint64) { return s(from), uint32(cwd + 1<<32), s(to) }
	made.Line("io_uring_mkdirat", 219, at("M-ring-dir"), u.do(sqe{opcode: opMkdirat, fd: cwd, addr: s("M-ring-dir"), len: 0o755}))
	a, fd, b := both("M-ring", "M-ring-renamed")
	r := u.do(sqe{opcode: opRenameat, fd: cwd, addr: a, len: fd, off: b})
	made.Line("io_uring_renameat", 213, at("M-ring"), r)
	made.Line("io_uring_renameat", 214, at("M-ring-renamed"), r)
	a, fd, b = both("M-ring-renamed", "M-ring-linked")
	r = u.do(sqe{opcode: opLinkat, fd: cwd, addr: a, len: fd, off: b})
	made.Line("io_uring_linkat", 215, at("M-ring-renamed"), r)
	made.Line("io_uring_linkat", 216, at("M-ring-linked"), r)
	r = u.do(sqe{opcode: opSymlinkat, fd: cwd, addr: s("M-target"), off: s("M-ring-symlink")})
	made.Line("io_uring_symlinkat", 217, at("M-ring-symlink"), r)
	r = u.do(sqe{opcode: opUnlinkat, fd: cwd, addr: s("M-ring-linked")})
	made.Line("io_uring_unlinkat", 211, at("M-ring-linked"), r)
	r = u.do(sqe{opcode: opUnlinkat, fd: cwd, addr: s("M-ring-dir"), opFlags: unix.AT_REMOVEDIR})
	made.Line("io_uring_unlinkat", 212, at("M-ring-dir"), r)
	r = u.do(sqe{opcode: opUnlinkat, fd: cwd, addr: s("M-ring-dir")})
	made.Line("io_uring_unlinkat-enoent", 211, at("M-ring-dir"), r)
}
