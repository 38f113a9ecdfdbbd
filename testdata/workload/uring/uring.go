//go:build linux

// Package uring makes calls through io_uring, one at a time or several at once.
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
	Addr3        uint64
	_            uint64
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

// Operations.
const (
	Nop       = 0
	Sendmsg   = 9
	Connect   = 16
	Openat    = 18
	Close     = 19
	Read      = 22
	Send      = 26
	Openat2   = 28
	Renameat  = 35
	Unlinkat  = 36
	Mkdirat   = 37
	Symlinkat = 38
	Linkat    = 39
	Fsetxattr = 41
	Setxattr  = 42
	Ftruncate = 55
	Bind      = 56
	Listen    = 57
)

// Flags of an entry.
const (
	Link   = 1 << 2 // the next one begins when this one is done
	Async  = 1 << 4 // a kernel worker does it
	Silent = 1 << 6 // no completion on success
)

// Flags of a ring: a kernel thread submits; a bad entry does not end a submission; only one task
// submits; completions come only when they are waited for.
const (
	Thread   = 1 << 1
	All      = 1 << 7
	Single   = 1 << 12
	Deferred = Single | 1<<13
)

// Ring is an io_uring.
type Ring struct {
	FD      int
	sq, cq  []byte
	entries []byte
	p       ringParams
	queued  uintptr
}

// New makes a ring.
func New() (*Ring, error) { return With(8, 0) }

// With makes a ring of a size with flags.
func With(size, flags uint32) (*Ring, error) {
	u := new(Ring)
	u.p.flags = flags
	r := made.Call(unix.SYS_IO_URING_SETUP, uintptr(size), uintptr(unsafe.Pointer(&u.p)))
	if r < 0 {
		return nil, unix.Errno(-r)
	}
	u.FD = int(r)
	var err error
	const rw, shared = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if u.sq, err = unix.Mmap(u.FD, 0, int(u.p.sq.array+4*u.p.sqEntries), rw, shared); err != nil {
		return nil, err
	}
	if u.cq, err = unix.Mmap(u.FD, 0x8000000, int(u.p.cq.dropped+16*u.p.cqEntries), rw, shared); err != nil {
		return nil, err
	}
	u.entries, err = unix.Mmap(u.FD, 0x10000000, int(64*u.p.sqEntries), rw, shared)
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
	u.Queue(e)
	u.Enter(0)
}

// Queue adds entries to the next submission.
func (u *Ring) Queue(entries ...Entry) {
	for _, e := range entries {
		tail := atomic.LoadUint32(word(u.sq, u.p.sq.tail))
		i := tail & *word(u.sq, u.p.sq.ringMask)
		*(*Entry)(unsafe.Pointer(&u.entries[64*i])) = e
		*word(u.sq, u.p.sq.array+4*i) = i
		atomic.StoreUint32(word(u.sq, u.p.sq.tail), tail+1)
		u.queued++
	}
}

// Enter submits what is queued, and waits for that many completions.
func (u *Ring) Enter(wait int) {
	n, flags := u.queued, uintptr(0)
	if wait > 0 {
		flags = 1
	}
	if u.p.flags&Thread != 0 {
		flags |= 2 // wake it
	}
	u.queued = 0
	made.Must("io_uring_enter", made.Call(unix.SYS_IO_URING_ENTER, uintptr(u.FD), n, uintptr(wait), flags, 0, 0))
}

// Wait waits for one completion and returns its result.
func (u *Ring) Wait() int64 {
	for made.Call(unix.SYS_IO_URING_ENTER, uintptr(u.FD), 0, 1, 1, 0, 0) == -int64(unix.EINTR) {
	}
	for {
		if r, ok := u.Result(); ok {
			return r.Result
		}
		runtime.Gosched()
	}
}

// Result is one completion.
type Result struct {
	UserData uint64
	Result   int64
}

// Result takes one completion, if there is one.
func (u *Ring) Result() (r Result, ok bool) {
	head := atomic.LoadUint32(word(u.cq, u.p.cq.head))
	if atomic.LoadUint32(word(u.cq, u.p.cq.tail)) == head {
		return r, false
	}
	at := u.p.cq.dropped + 16*(head&*word(u.cq, u.p.cq.ringMask))
	c := *(*cqe)(unsafe.Pointer(&u.cq[at]))
	atomic.StoreUint32(word(u.cq, u.p.cq.head), head+1)
	return Result{c.userData, int64(c.res)}, true
}
