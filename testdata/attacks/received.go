//go:build linux

package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

const messageSocket = "socket"

// passFiles sends descriptors of a file to who asks for them: three in a message, and the sender's identity before them.
func passFiles(o *world) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	f, err := os.Create(o.path("passed"))
	if err != nil {
		return
	}
	defer f.Close()
	if o.await("listens") != nil || unix.Connect(fd, &unix.SockaddrUnix{Name: o.path(messageSocket)}) != nil {
		return
	}
	n := int(f.Fd())
	unix.Sendmsg(fd, []byte("x"), unix.UnixRights(n, n, n), nil, 0)
	o.await("received")
}

// takeFiles receives them, and takes another by pidfd_getfd.
func takeFiles(w *world) error {
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(l, &unix.SockaddrUnix{Name: messageSocket})
	}
	if err == nil {
		err = unix.Listen(l, 1)
	}
	if err != nil {
		return err
	}
	w.signal("listens")
	fd, _, err := unix.Accept(l)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	}
	if err != nil {
		return err
	}
	buf, control := make([]byte, 8), make([]byte, 256)
	n, c, _, _, err := unix.Recvmsg(fd, buf, control, 0)
	w.signal("received")
	if err != nil {
		return err
	}
	parts, err := unix.ParseSocketControlMessage(control[:c])
	if err != nil || n != 1 {
		return fmt.Errorf("%d bytes: %w", n, err)
	}
	var fds []int
	for i := range parts {
		if got, err := unix.ParseUnixRights(&parts[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return err
	}
	if len(fds) > 0 {
		again, err := unix.PidfdGetfd(self, fds[0], 0)
		if err != nil {
			return err
		}
		fds = append(fds, again)
	}
	count := 0
	for _, fd := range fds {
		if name, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd)); err == nil && name == w.path("passed") {
			count++
		}
	}
	w.say("descriptors", fmt.Sprint(len(parts), " parts, ", count, " descriptors"))
	return nil
}

func init() {
	add(attack{name: "descriptors from another process", class: "A14", alone: true, run: takeFiles, outside: passFiles,
		what: "receives three descriptors in a message, after the sender's identity (SCM_CREDENTIALS), and takes a fourth by pidfd_getfd: no name of the file is looked up",
		judge: func(e *evidence) verdict {
			if got := e.said("descriptors"); got != "2 parts, 4 descriptors" {
				return failed("received: %s", got)
			}
			text := schemas.BlindReceived + " (4)"
			if !e.noted(text) {
				return lie("absent: %s", text)
			}
			return declared("blind spot: %s", text)
		}})
}
