//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

var loopback = [4]byte{127, 0, 0, 1}

// served is a socket bound to a port of this machine, and its address as the record spells it.
func served(kind int) (fd int, port int, err error) {
	if fd, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0); err != nil {
		return 0, 0, err
	}
	if err = unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback}); err != nil {
		return 0, 0, err
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return 0, 0, err
	}
	if kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, 5)
	}
	return fd, sa.(*unix.SockaddrInet4).Port, err
}

func local4(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// received is how many datagrams wait at a socket.
func received(fd int) (n int) {
	for {
		if _, _, err := unix.Recvfrom(fd, make([]byte, 99), unix.MSG_DONTWAIT); err != nil {
			return n
		}
		n++
	}
}

func init() {
	add(attack{name: "an address on a connected stream", class: "B1", user: true,
		what: "sendto on a connected TCP socket with the address of another peer, which the kernel ignores",
		run: func(w *world) error {
			_, there, err := served(unix.SOCK_STREAM)
			if err != nil {
				return err
			}
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			w.say("peer", local4(there))
			return errors.Join(unix.Connect(fd, &unix.SockaddrInet4{Port: there, Addr: loopback}),
				unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 77}}))
		},
		judge: func(e *evidence) verdict {
			return e.compare(done(schemas.EventConnect, e.said("peer")), schemas.EventSendto, schemas.EventSendmsg)
		}})

	add(attack{name: "a second address while corked", class: "B1", user: true,
		what: "two sendto with different addresses on a corked UDP socket: both parts go to the first",
		run: func(w *world) error {
			one, port1, err := served(unix.SOCK_DGRAM)
			if err != nil {
				return err
			}
			two, port2, err := served(unix.SOCK_DGRAM)
			if err != nil {
				return err
			}
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			const cork = 1
			err = errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_UDP, cork, 1),
				unix.Sendto(fd, []byte("a"), 0, &unix.SockaddrInet4{Port: port1, Addr: loopback}),
				unix.Sendto(fd, []byte("b"), 0, &unix.SockaddrInet4{Port: port2, Addr: loopback}),
				unix.SetsockoptInt(fd, unix.IPPROTO_UDP, cork, 0))
			w.say("first", local4(port1))
			w.say("second", local4(port2))
			w.say("received", fmt.Sprint(received(one), received(two)))
			return err
		},
		judge: func(e *evidence) verdict {
			if e.said("received") != "1 0" {
				return failed("received: %s", e.said("received"))
			}
			for i := range e.own {
				l := &e.own[i]
				if l.Type == schemas.EventSendto && l.text() == e.said("second") && l.marked() == "" {
					return lie("false: %s, which was sent nothing", e.show(l))
				}
			}
			for i := range e.own {
				if l := &e.own[i]; l.Type == schemas.EventSendto && l.text() == e.said("first") {
					return exact()
				}
			}
			return lie("absent: the datagram to the first")
		}})

	add(attack{name: "bind without a family", class: "B3", user: true,
		what: "bind with the family AF_UNSPEC, which the kernel takes for IPv4, on port 0",
		run: func(w *world) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			name := make([]byte, unix.SizeofSockaddrInet4)
			if r := raw(unix.SYS_BIND, uintptr(fd), addr(&name[0]), uintptr(len(name))); r < 0 {
				return unix.Errno(-r)
			}
			return w.sayName(fd)
		},
		judge: func(e *evidence) verdict { return e.compare(done(schemas.EventBind, e.said("name"))) }})

	add(attack{name: "a port that the kernel chooses", class: "B3", user: true, ordinary: true,
		what: "bind to port 0, then listen; and a unix socket bound without a name (autobind)",
		run: func(w *world) error {
			fd, port, err := served(unix.SOCK_STREAM)
			if err != nil {
				return err
			}
			w.say("name", local4(port))
			if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0); err != nil {
				return err
			}
			family := make([]byte, 2)
			binary.NativeEndian.PutUint16(family, unix.AF_UNIX)
			if r := raw(unix.SYS_BIND, uintptr(fd), addr(&family[0]), 2); r < 0 {
				return unix.Errno(-r)
			}
			sa, err := unix.Getsockname(fd)
			if err == nil {
				w.say("unix", "unix:@"+sa.(*unix.SockaddrUnix).Name[1:])
			}
			return err
		},
		judge: func(e *evidence) verdict {
			return e.compare(append(done(schemas.EventBind, e.said("name"), e.said("unix")), done(schemas.EventListen, e.said("name"))...))
		}})

	add(attack{name: "an address rewritten while connect waits", class: "B6", user: true,
		what: "connect to a unix socket whose queue is full waits; meanwhile a thread writes another path into the address",
		run: func(w *world) error {
			server, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			real := w.dir + "/real"
			if err := errors.Join(unix.Bind(server, &unix.SockaddrUnix{Name: real}), unix.Listen(server, 0)); err != nil {
				return err
			}
			first, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err := unix.Connect(first, &unix.SockaddrUnix{Name: real}); err != nil {
				return err
			}
			name := make([]byte, 110)
			binary.NativeEndian.PutUint16(name, unix.AF_UNIX)
			copy(name[2:], real)
			ret := make(chan int64)
			var caller waiter
			go func() {
				runtime.LockOSThread()
				fd, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
				caller.calls()
				ret <- raw(unix.SYS_CONNECT, uintptr(fd), addr(&name[0]), uintptr(len(name)))
			}()
			if err := caller.asleep(); err != nil {
				return err
			}
			copy(name[2+len(w.dir)+1:], "fake")
			for range 2 {
				if _, _, err := unix.Accept(server); err != nil {
					return err
				}
			}
			w.say("ret", <-ret)
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("ret") != "0" {
				return failed("connect: %s", e.said("ret"))
			}
			return e.compare(done(schemas.EventConnect, "unix:"+e.path("real"), "unix:"+e.path("real")))
		}})

	add(attack{name: "a socket used from outside", class: "B5",
		what: "a process outside of the cgroup takes a socket of ours (pidfd_getfd) and sends by it",
		run: func(w *world) error {
			there, port, err := served(unix.SOCK_DGRAM)
			if err != nil {
				return err
			}
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			w.say("name", local4(port))
			os.WriteFile(w.path("at-socket.new"), []byte(fmt.Sprintln(os.Getpid(), fd, port)), 0o600)
			os.Rename(w.path("at-socket.new"), w.path("at-socket"))
			if err := w.await("sent"); err != nil {
				return err
			}
			w.say("received", received(there))
			return nil
		},
		outside: func(w *world) {
			if w.await("socket") != nil {
				return
			}
			defer w.signal("sent")
			var pid, fd, port int
			b, _ := os.ReadFile(w.path("at-socket"))
			fmt.Sscan(string(b), &pid, &fd, &port)
			p, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return
			}
			defer unix.Close(p)
			s, err := unix.PidfdGetfd(p, fd, 0)
			if err != nil {
				return
			}
			defer unix.Close(s)
			unix.Sendto(s, []byte("x"), 0, &unix.SockaddrInet4{Port: port, Addr: loopback})
		},
		judge: func(e *evidence) verdict {
			if e.said("received") != "1" {
				return failed("received: %s", e.said("received"))
			}
			for i := range e.all {
				if l := &e.all[i]; (l.Type == schemas.EventSendto || l.Type == schemas.EventSendmsg) && l.text() == e.said("name") {
					return lie("false: %s by process %d", e.show(l), l.PID)
				}
			}
			return exact()
		}})
}

// sayName says what getsockname says.
func (w *world) sayName(fd int) error {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	s := sa.(*unix.SockaddrInet4)
	w.say("name", fmt.Sprintf("%d.%d.%d.%d:%d", s.Addr[0], s.Addr[1], s.Addr[2], s.Addr[3], s.Port))
	return nil
}

func init() {
	add(attack{name: "an address of another family", class: "B3", user: true,
		what: "connect of an IPv4 socket to addresses of other families, which are refused",
		run: func(w *world) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			for _, family := range []uint16{unix.AF_UNIX, unix.AF_INET6, unix.AF_NETLINK, 77} {
				name := make([]byte, 28)
				binary.NativeEndian.PutUint16(name, family)
				copy(name[2:], "/s\x01\x02\x03")
				if r := raw(unix.SYS_CONNECT, uintptr(fd), addr(&name[0]), uintptr(len(name))); r != -int64(unix.EAFNOSUPPORT) {
					return fmt.Errorf("family %d: %d", family, r)
				}
			}
			return nil
		},
		judge: func(e *evidence) verdict {
			refused := 0
			for i := range e.own {
				l := &e.own[i]
				if l.Type != schemas.EventConnect {
					continue
				}
				// as IPv4 these bytes would be 1.2.3.0 or 0.0.0.0, which nobody named
				if l.Status != schemas.StatusError || strings.HasPrefix(l.text(), "1.2.3.") || strings.HasPrefix(l.text(), "0.0.0.0:") {
					return lie("false: %s", e.show(l))
				}
				refused++
			}
			if refused != 4 {
				return lie("absent: %d of 4 connects", 4-refused)
			}
			return exact()
		}})
}

func init() {
	add(attack{name: "a socket that lets go of its peer", class: "B3", user: true,
		what: "connect of IPv4 and IPv6 sockets, of datagrams and of a stream, to a peer, then without a family: they have no peer any more",
		run: func(w *world) error {
			fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0)
			if err != nil {
				return noSuch(err, "no IPv6 here")
			}
			if err := unix.Connect(fd, &unix.SockaddrInet6{Port: 9, Addr: [16]byte{15: 1}}); err != nil {
				return notHere("no IPv6 here")
			}
			_, port, err := served(unix.SOCK_STREAM)
			if err != nil {
				return err
			}
			name := make([]byte, unix.SizeofSockaddrInet6)
			for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_STREAM} {
				other := made(unix.AF_INET, kind, 0)
				if err := unix.Connect(other, &unix.SockaddrInet4{Port: port, Addr: loopback}); err != nil {
					return err
				}
				if r := raw(unix.SYS_CONNECT, uintptr(other), addr(&name[0]), uintptr(len(name))); r != 0 {
					return unix.Errno(-r)
				}
			}
			w.say("port", port)
			w.say("ret", raw(unix.SYS_CONNECT, uintptr(fd), addr(&name[0]), uintptr(len(name))))
			_, err = unix.Getpeername(fd)
			w.say("peer", err)
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("ret") != "0" || e.said("peer") != unix.ENOTCONN.Error() {
				return failed("connect %s, getpeername %s", e.said("ret"), e.said("peer"))
			}
			peers, none := []string{"[::1]:9", "127.0.0.1:" + e.said("port"), "127.0.0.1:" + e.said("port")}, 0
			for i := range e.own {
				l := &e.own[i]
				if l.Type != schemas.EventConnect {
					continue
				}
				if l.Value == nil && l.Doubt == "" {
					none++
				} else if at := slices.Index(peers, l.text()); at >= 0 {
					peers = slices.Delete(peers, at, at+1)
				} else {
					return lie("false: %s", e.show(l))
				}
			}
			if none != 3 || len(peers) > 0 {
				return lie("absent: %v, and %d of 3 connects without a peer", peers, 3-none)
			}
			return exact()
		}})
}
