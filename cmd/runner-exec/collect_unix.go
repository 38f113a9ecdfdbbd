//go:build unix

package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/cmd/internal/clock"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/schemas"
)

// pipeSize is the capacity that is set for the FIFO. No more than this can have been in
// it at one moment.
const pipeSize = 1 << 20

// fifo collects one log. A goroutine of its own empties the FIFO all the time, so that
// a writer never waits for the rest of runner-exec.
type fifo struct {
	path   string
	dir    *logDir
	name   string
	id     fileID
	broken chan<- error
	wake   [2]*os.File
	ended  chan struct{} // closed by the reader

	mu      sync.Mutex
	r, w    int // w: our own write end, open until the command has ended, so that r does not reach its end
	log     *lineLog
	silent  bool // stop when no process has it open
	stopped bool
	failed  error
	marked  bool
	atEnd   uint64 // bytes that had arrived when the command ended
	writers string
}

// fileID identifies a file independently of its name.
type fileID struct{ dev, ino uint64 }

// collect opens the FIFO name and begins to read it.
func collect(dir *logDir, name string, times bool, broken chan<- error) (f *fifo, err error) {
	f = &fifo{path: dir.file(name), dir: dir, name: name, broken: broken, r: -1, w: -1,
		ended: make(chan struct{}), writers: schemas.WritersUnknown}
	defer func() {
		if err != nil {
			f.release()
		}
	}()
	if f.wake[0], f.wake[1], err = os.Pipe(); err != nil {
		return nil, err
	}
	if f.log, err = newLineLog(); err != nil {
		return nil, err
	}
	if times {
		f.log.clock = clock.Monotonic
	}
	const flags = unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOFOLLOW
	if f.r, err = unix.Open(f.path, unix.O_RDONLY|flags, 0); err != nil {
		return nil, fmt.Errorf("opening %s: %w", f.path, err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(f.r, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFIFO {
		err = fmt.Errorf("%s is not a FIFO", f.path)
	}
	if err != nil {
		return nil, err
	}
	f.id = fileID{uint64(st.Dev), st.Ino}
	if f.w, err = unix.Open(f.path, unix.O_WRONLY|flags, 0); err != nil {
		return nil, fmt.Errorf("opening %s: %w", f.path, err)
	}
	child.WidenPipeFD(uintptr(f.r))
	if err = unix.Fchmod(f.r, dir.fifoMode()); err != nil {
		return nil, fmt.Errorf("making %s writable for the command: %w", f.path, err)
	}
	go f.read()
	return f, nil
}

// Results of one read.
const (
	more   = iota // there may be more bytes
	quiet         // a writer has it open, and there are no bytes now
	nobody        // no writer has it open
	over          // stop reading
)

// read empties the FIFO until stop is called.
func (f *fifo) read() {
	defer close(f.ended)
	buf := make([]byte, 256<<10)
	for {
		f.mu.Lock()
		state := f.next(buf)
		if f.stopped || state == nobody && f.silent {
			state = over
		}
		f.mu.Unlock()
		switch state {
		case quiet:
			f.wait(-1, true)
		case nobody:
			// Without a writer, poll would return at once each time, so wait a little. The
			// bytes of the next writer stay in the FIFO until then.
			f.wait(10, false)
		case over:
			return
		}
	}
}

// next takes the bytes that are there, and never waits. The caller holds mu.
func (f *fifo) next(buf []byte) int {
	n, err := unix.Read(f.r, buf)
	switch {
	case err == unix.EINTR:
		return more
	case err == unix.EAGAIN:
		return quiet
	case err != nil:
		f.fail(fmt.Errorf("reading %s: %w", f.path, err))
		return over
	case n == 0:
		return nobody
	}
	f.log.take(buf[:n])
	if f.log.err != nil {
		f.fail(f.log.err)
	}
	return more
}

// fail ends the run: a log with an unknown gap is worse than no log. Until then the
// FIFO is still emptied.
func (f *fifo) fail(err error) {
	if f.failed == nil {
		f.failed = err
		f.broken <- err
	}
}

// wait waits until wakeUp is called, ms have passed or, if data is set, bytes arrive.
func (f *fifo) wait(ms int, data bool) {
	fds := make([]unix.PollFd, 0, 2)
	if c, err := f.wake[0].SyscallConn(); err == nil {
		c.Control(func(fd uintptr) {
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			if data {
				fds = append(fds, unix.PollFd{Fd: int32(f.r), Events: unix.POLLIN})
			}
			unix.Poll(fds, ms)
			if fds[0].Revents != 0 {
				unix.Read(int(fd), make([]byte, 64))
			}
		})
	}
}

func (f *fifo) wakeUp() { f.wake[1].Write([]byte{0}) }

// pending takes the bytes that are in the FIFO now. It stops after pipeSize bytes, so
// that it ends even if a writer never stops. The caller holds mu.
func (f *fifo) pending() {
	buf := make([]byte, 64<<10)
	for begin := f.log.total; f.log.total-begin < pipeSize; {
		if f.next(buf) != more {
			return
		}
	}
}

// mark separates the bytes written before the command's end from those written after
// it, and checks whether a process still has the FIFO open.
func (f *fifo) mark() {
	f.mu.Lock()
	defer f.mu.Unlock()
	unix.Close(f.w)
	f.w = -1
	fds := []unix.PollFd{{Fd: int32(f.r), Events: unix.POLLIN}}
	_, err := unix.Poll(fds, 0)
	for err == unix.EINTR { // a signal of Go's own, when nothing is there to report
		_, err = unix.Poll(fds, 0)
	}
	if err == nil {
		f.writers = schemas.WritersOpen
		if fds[0].Revents&unix.POLLHUP != 0 {
			f.writers = schemas.WritersNone
		}
	}
	f.pending()
	f.marked, f.atEnd = true, f.log.total
	f.wakeUp()
}

// finish implements collector.
func (f *fifo) finish(done <-chan struct{}, silent bool) (*lineLog, logFacts, error) {
	f.mu.Lock()
	f.silent = silent
	f.mu.Unlock()
	f.wakeUp()
	select {
	case <-done:
	case <-f.ended:
	}
	f.stop()
	facts := logFacts{replaced: f.replaced(), writers: f.writers, afterEnd: f.log.total - f.atEnd}
	return f.log, facts, f.failed
}

// stop takes the bytes that are left and ends the reader.
func (f *fifo) stop() {
	f.mu.Lock()
	if !f.stopped {
		f.pending()
		f.stopped = true
	}
	f.mu.Unlock()
	f.wakeUp()
	<-f.ended
}

// replaced reports whether the path led to another file, or to none, at any time since
// the command was started.
func (f *fifo) replaced() bool {
	var st unix.Stat_t
	if err := unix.Lstat(f.path, &st); err != nil || f.id != (fileID{uint64(st.Dev), st.Ino}) {
		return true
	}
	return f.dir.touched(f.name)
}

func (f *fifo) close() {
	f.stop()
	f.release()
}

func (f *fifo) release() {
	for _, fd := range []int{f.r, f.w} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	for _, w := range f.wake {
		if w != nil {
			w.Close()
		}
	}
	if f.log != nil {
		f.log.close()
	}
}

// patientRemoval is how long the keeper may take to answer or to remove the directory.
const patientRemoval = 5 * time.Second
