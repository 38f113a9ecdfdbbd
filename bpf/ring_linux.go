//go:build amd64 || arm64

package bpf

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// Ring reads the records of a ring, in their order. It does what ringbuf.Reader does, but maps only a window of the ring at a
// time: what a process maps of a ring counts as its memory, and that one maps all of it twice. Not safe for concurrent use, but
// for Flush.
type Ring struct {
	fd, size   int
	cons, prod []byte // the pages with the positions up to which it is read and written
	window     []byte // a part of the data
	from       uint64 // the position that the window begins with
	epoll      int
	deadline   time.Time
	some       bool  // there may be records
	pending    error // to return when there are no more

	mu   sync.Mutex // guards what follows
	wake int        // an eventfd: Flush was called; -1 after Close
}

const (
	ringWindow  = 1 << 20
	ringBusy    = 1 << 31 // of a length: the record is being written (BPF_RINGBUF_BUSY_BIT)
	ringDiscard = 1 << 30 // it is none (BPF_RINGBUF_DISCARD_BIT)
	mostSpins   = 1000
)

// NewRing maps a ring and waits for its wake-ups from here on.
func NewRing(m *ebpf.Map) (_ *Ring, err error) {
	r := &Ring{fd: m.FD(), size: int(m.MaxEntries()), epoll: -1, wake: -1}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	page := os.Getpagesize()
	if r.cons, err = unix.Mmap(r.fd, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	if r.prod, err = unix.Mmap(r.fd, int64(page), page, unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	if r.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if r.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	for _, fd := range []int{r.fd, r.wake} {
		if err = unix.EpollCtl(r.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			return nil, os.NewSyscallError("epoll_ctl", err)
		}
	}
	return r, nil
}

// Close releases the ring.
func (r *Ring) Close() {
	for _, b := range []*[]byte{&r.cons, &r.prod, &r.window} {
		if *b != nil {
			unix.Munmap(*b)
			*b = nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, fd := range []*int{&r.epoll, &r.wake} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}

// SetDeadline is how long ReadInto waits. Without a deadline it waits for a wake-up.
func (r *Ring) SetDeadline(t time.Time) { r.deadline = t }

// BufferSize is the ring's size in bytes.
func (r *Ring) BufferSize() int { return r.size }

// AvailableBytes is how much waits to be read.
func (r *Ring) AvailableBytes() int { return int(position(r.prod) - position(r.cons)) }

// Flush ends a wait: ReadInto returns what is there, and then ringbuf.ErrFlushed.
func (r *Ring) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wake < 0 {
		return os.ErrClosed
	}
	one := [8]byte{7: 1} // not 0, in either order of bytes
	_, err := unix.Write(r.wake, one[:])
	if errors.Is(err, unix.EAGAIN) { // it is as full as it can be: then the wait ends too
		return nil
	}
	return os.NewSyscallError("write", err)
}

// ReadInto reads the next record. When there are no more it returns os.ErrDeadlineExceeded or ringbuf.ErrFlushed.
func (r *Ring) ReadInto(rec *ringbuf.Record) error {
	for {
		if !r.some {
			if err := r.pending; err != nil {
				r.pending = nil
				return err
			}
			err := r.wait()
			if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, ringbuf.ErrFlushed) {
				return err
			}
			r.pending, r.some = err, true
		}
		if there, err := r.next(rec); there || err != nil {
			return err
		}
		r.some = false
	}
}

// wait returns after a wake-up, nil, or when one is not waited for any more.
func (r *Ring) wait() error {
	var events [2]unix.EpollEvent
	for {
		timeout := -1
		if !r.deadline.IsZero() {
			timeout = max(0, int((time.Until(r.deadline)+time.Millisecond-1)/time.Millisecond))
		}
		n, err := unix.EpollWait(r.epoll, events[:], timeout)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return os.NewSyscallError("epoll_wait", err)
		case n == 0:
			return os.ErrDeadlineExceeded
		}
		for _, e := range events[:n] {
			if int(e.Fd) == r.wake {
				var count [8]byte
				unix.Read(r.wake, count[:])
				return ringbuf.ErrFlushed
			}
		}
		return nil
	}
}

// next copies the next record out of the ring, if there is one. Where it begins is read from the page that the kernel reads: if
// somebody else wrote there, what is read here does not fit what was written (Session.ReadTo).
func (r *Ring) next(rec *ringbuf.Record) (there bool, err error) {
	at, end := position(r.cons), position(r.prod)
	if end-at > uint64(r.size) { // it never holds that much: there is no record here that is known to be one
		return false, nil
	}
	for spins := 0; at != end; {
		if end-at < ringHead {
			return false, fmt.Errorf("record at %d: %d bytes, expected a header of %d", at, end-at, ringHead)
		}
		head, err := r.data(at, ringHead)
		if err != nil {
			return false, err
		}
		length := atomic.LoadUint32((*uint32)(unsafe.Pointer(&head[0]))) // what the kernel wrote before is seen from here on
		if length&ringBusy != 0 {                                        // its writer needs a moment and, if it was preempted, perhaps this processor
			if spins++; spins > mostSpins {
				time.Sleep(10 * time.Microsecond)
			}
			continue
		}
		n := length &^ ringDiscard
		next := at + ringHead + (uint64(n)+7)&^7
		if end-at < next-at || next-at > uint64(r.size) {
			return false, fmt.Errorf("record at %d: %d bytes, expected at most %d", at, n, end-at-ringHead)
		}
		if length&ringDiscard == 0 {
			b, err := r.data(at+ringHead, int(n))
			if err != nil {
				return false, err
			}
			rec.RawSample = append(rec.RawSample[:0], b...)
			there = true
		}
		at = next
		atomic.StoreUint64((*uint64)(unsafe.Pointer(&r.cons[0])), at)
		if there {
			rec.Remaining = int(end - at)
			return true, nil
		}
	}
	return false, nil
}

// data are n bytes of the ring. They are valid until the next call. The kernel shows the ring's data twice, one after the other,
// so that a record at the end is in one piece.
func (r *Ring) data(at uint64, n int) ([]byte, error) {
	if off := at - r.from; at >= r.from && off+uint64(n) <= uint64(len(r.window)) {
		return r.window[off : off+uint64(n)], nil
	}
	if r.window != nil {
		unix.Munmap(r.window)
		r.window = nil
	}
	page := os.Getpagesize()
	in := int(at & uint64(page-1))
	start := int(at&uint64(r.size-1)) - in
	length := min(max(ringWindow, (in+n+page-1)&^(page-1)), 2*r.size-start)
	b, err := unix.Mmap(r.fd, int64(2*page+start), length, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	r.window, r.from = b, at-uint64(in)
	return b[in : in+n], nil
}
