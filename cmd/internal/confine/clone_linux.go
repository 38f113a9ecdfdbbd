package confine

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cloneListener answers what the filter asks: may this clone3 pass? The one that starts
// the program in its cgroup may, as it is that of our own thread. Any other does not
// exist; and once the listener is closed the kernel answers so itself.
type cloneListener struct {
	fd     int
	thread uint32
}

// notification and answer are struct seccomp_notif and seccomp_notif_resp.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	data  [64]byte
}

type answer struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// serve calls start and answers meanwhile.
func (l *cloneListener) serve(start func() error) error {
	defer unix.Close(l.fd)
	var stop [2]int
	if err := unix.Pipe2(stop[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	defer unix.Close(stop[0])
	// Go starts a program with a call that the scheduler and the garbage collector do
	// not know of. The goroutine that answers must go on meanwhile: it has a processor of
	// its own, and nothing stops the world.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC() // one that had begun is over

	answered := make(chan error, 1)
	go func() { answered <- l.answer(stop[0]) }()
	err := start()
	unix.Close(stop[1])
	return errors.Join(err, <-answered)
}

// answer answers until the other end of stop is closed.
func (l *cloneListener) answer(stop int) error {
	for {
		fds := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}, {Fd: int32(stop)}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for the filter's question: %w", err)
		}
		if fds[0].Revents&unix.POLLIN != 0 {
			l.one()
		} else if fds[1].Revents != 0 {
			return nil
		}
	}
}

// one answers one question. One whose caller was killed meanwhile needs no answer.
func (l *cloneListener) one() {
	var n notification
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return
	}
	a := answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if n.pid != l.thread {
		a.flags, a.err = 0, -int32(unix.ENOSYS)
	}
	unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
}
