//go:build unix

package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// descriptor reads and writes without the Go runtime's poller. This takes one system
// call a message, and no switch to another thread.
type descriptor int

// readerOf reads r through its descriptor if it is a file.
func readerOf(r io.Reader) io.Reader {
	if f, ok := r.(*os.File); ok {
		return descriptorOf(f)
	}
	return r
}

func writerOf(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		return descriptorOf(f)
	}
	return w
}

// descriptorOf does not call Fd on the standard streams: that changes their flags, which
// other processes may share.
func descriptorOf(f *os.File) descriptor {
	switch f {
	case os.Stdin:
		return 0
	case os.Stdout:
		return 1
	}
	return descriptor(f.Fd())
}

func (d descriptor) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), b)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			d.wait(unix.POLLIN)
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (d descriptor) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := unix.Write(int(d), b[done:])
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			d.wait(unix.POLLOUT)
		case err != nil:
			return done, err
		default:
			done += n
		}
	}
	return done, nil
}

func (d descriptor) wait(events int16) {
	unix.Poll([]unix.PollFd{{Fd: int32(d), Events: events}}, -1)
}
