//go:build linux

// Package uring makes calls through io_uring, one at a time.
package uring

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

// Entry is one submission entry of io_uring(7).
type Entry struct {
	Op, Flags    uint8
	Priority     uint16
	FD           int32
	Off, Addr    uint64
	Len, OpFlags uint32
	UserData     uint64
	BufIndex     uint16
	Personality  uint16
	Slot         int32
	_            [2]uint64
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

// Operations, and the flag by which a kernel worker does one.
const (
	Connect   = 16
	Openat    = 18
	Openat2   = 28
	Renameat  = 35
	Unlinkat  = 36
	Mkdirat   = 37
	Symlinkat = 38
	Linkat    = 39
	Ftruncate = 55
	Async     = 1 << 4 // IOSQE_ASYNC: a kernel worker does it
)

// Ring is an io_uring.
type Ring struct {
	FD      int
	sq, cq  []byte
	entries []byte
	p       ringParams
}

// New makes a ring.
func New() (*Ring, error) {
	u := new(Ring)
	r := made.Call(unix.SYS_IO_URING_SETUP, 8, uintptr(unsafe.Pointer(&u.p)))
	if r < 0 {
		return nil, unix.Errno(-r)
	}
	u.FD = int(r)
	var err error
	size := func(n uint32) int { return int(n) }
	const rw, shared = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if u.sq, err = unix.Mmap(u.FD, 0, size(u.p.sq.array+4*u.p.sqEntries), rw, shared); err != nil {
		return nil, err
	}
	if u.cq, err = unix.Mmap(u.FD, 0x8000000, size(u.p.cq.dropped+16*u.p.cqEntries), rw, shared); err != nil {
		return nil, err
	}
	u.entries, err = unix.Mmap(u.FD, 0x10000000, size(64*u.p.sqEntries), rw, shared)
	return u, err
}

func word(b []byte, off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&b[off])) }

// Do submits one entry, waits for its completion and returns the result.
func (u *Ring) Do(e Entry) int64 {
	u.Submit(e)
	return u.Wait()
}

// Submit submits one entry.
func (u *Ring) Submit(e Entry) {
	tail := atomic.LoadUint32(word(u.sq, u.p.sq.tail))
	i := tail & *word(u.sq, u.p.sq.ringMask)
	*(*Entry)(unsafe.Pointer(&u.entries[64*i])) = e
	*word(u.sq, u.p.sq.array+4*i) = i
	atomic.StoreUint32(word(u.sq, u.p.sq.tail), tail+1)
	made.Must("io_uring_enter", made.Call(unix.SYS_IO_URING_ENTER, uintptr(u.FD), 1, 0, 0, 0, 0))
}

// Wait waits for one completion and returns its result.
func (u *Ring) Wait() int64 {
	for made.Call(unix.SYS_IO_URING_ENTER, uintptr(u.FD), 0, 1, 1, 0, 0) == -int64(unix.EINTR) {
	}
	head := atomic.LoadUint32(word(u.cq, u.p.cq.head))
	for atomic.LoadUint32(word(u.cq, u.p.cq.tail)) == head {
		runtime.Gosched()
	}
	at := u.p.cq.dropped + 16*(head&*word(u.cq, u.p.cq.ringMask))
	res := (*cqe)(unsafe.Pointer(&u.cq[at])).res
	atomic.StoreUint32(word(u.cq, u.p.cq.head), head+1)
	return int64(res)
}
