//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

func init() {
	add(attack{name: "sendmmsg of no messages", class: "B2", user: true,
		what: "sendmmsg with a count of 0, its array names a peer: nothing is sent",
		run: func(w *world) error {
			there, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return err
			}
			if err := unix.Bind(there, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
				return err
			}
			name := make([]byte, unix.SizeofSockaddrAny)
			size := uint32(len(name))
			if r := raw(unix.SYS_GETSOCKNAME, uintptr(there), addr(&name[0]), addr(&size)); r < 0 {
				return unix.Errno(-r)
			}
			w.say("peer", fmt.Sprintf("127.0.0.1:%d", int(name[2])<<8|int(name[3])))
			here, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			data := []byte("x")
			iov := unix.Iovec{Base: &data[0], Len: 1}
			m := message{hdr: unix.Msghdr{Name: &name[0], Namelen: unix.SizeofSockaddrInet4, Iov: &iov, Iovlen: 1}}
			w.say("ret", raw(unix.SYS_SENDMMSG, uintptr(here), addr(&m), 0, 0))
			_, _, err = unix.Recvfrom(there, make([]byte, 9), unix.MSG_DONTWAIT)
			w.say("received", err == nil)
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("ret") != "0" || e.said("received") != "false" {
				return failed("sendmmsg returned %s, received: %s", e.said("ret"), e.said("received"))
			}
			return e.compare(nil, schemas.EventSendmmsg)
		}})

	add(attack{name: "a datagram without a name before a refused one", class: "B1", user: true,
		what: "write, send, sendmsg and sendmmsg on an IPv6 socket that is connected to an IPv4 address, which the kernel shows to the hook, each before a send to another peer that is refused before the hook",
		run: func(w *world) error {
			there, port, err := served(unix.SOCK_DGRAM)
			if err != nil {
				return err
			}
			fd := made(unix.AF_INET6, unix.SOCK_DGRAM, 0)
			mapped := [16]byte{10: 255, 11: 255, 12: 127, 15: 1}
			if err := unix.Connect(fd, &unix.SockaddrInet6{Port: port, Addr: mapped}); err != nil {
				return err
			}
			w.say("peer", local4(port))
			x := []byte("x")
			iov := unix.Iovec{Base: &x[0], Len: 1}
			m := message{hdr: unix.Msghdr{Iov: &iov, Iovlen: 1}}
			for _, send := range []func() int64{
				func() int64 { return raw(unix.SYS_WRITE, uintptr(fd), addr(&x[0]), 1) },
				func() int64 { return raw(unix.SYS_SENDTO, uintptr(fd), addr(&x[0]), 1, 0, 0, 0) },
				func() int64 { return raw(unix.SYS_SENDMSG, uintptr(fd), addr(&m.hdr), 0) },
				func() int64 { return raw(unix.SYS_SENDMMSG, uintptr(fd), addr(&m.hdr), 1, 0) },
			} {
				if n := send(); n != 1 {
					return fmt.Errorf("sent %d", n)
				}
				// port 0 is refused before the hook
				if err := unix.Sendto(fd, x, 0, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}); !errors.Is(err, unix.EINVAL) {
					return fmt.Errorf("port 0: %v", err)
				}
			}
			w.say("received", received(there))
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("received") != "4" {
				return failed("received: %s", e.said("received"))
			}
			sent, refused := 0, 0
			for i := range e.own {
				switch l := &e.own[i]; {
				case l.Type != schemas.EventSendto && l.Type != schemas.EventSendmsg && l.Type != schemas.EventSendmmsg:
				case l.text() == e.said("peer") && l.Return == nil && l.marked() == "":
					sent++
				case l.text() == "[::1]:0" && l.Return != nil && *l.Return == -int64(unix.EINVAL):
					refused++
				default:
					return lie("false: %s", e.show(l))
				}
			}
			if sent != 4 || refused != 4 {
				return lie("%d of 4 datagrams, and %d of 4 that were refused", sent, refused)
			}
			return exact()
		}})

	add(attack{name: "what sendmmsg left before a refused send", class: "B1", user: true,
		what: "sendmmsg whose second message fails after the hook, or that connects (MSG_FASTOPEN), then a send, or connect, that is refused before the hook",
		run: func(w *world) error {
			there, port, err := served(unix.SOCK_DGRAM)
			if err != nil {
				return err
			}
			_, tcp, err := served(unix.SOCK_STREAM)
			if err != nil {
				return err
			}
			fd := made(unix.AF_INET, unix.SOCK_DGRAM, 0)
			w.say("peer", local4(port))
			w.say("tcp", local4(tcp))
			x := []byte("x")
			iov := unix.Iovec{Base: &x[0], Len: 1}
			name := func(ip [4]byte, port int) *byte {
				b := make([]byte, unix.SizeofSockaddrInet4)
				binary.NativeEndian.PutUint16(b, unix.AF_INET)
				binary.BigEndian.PutUint16(b[2:], uint16(port))
				copy(b[4:], ip[:])
				return &b[0]
			}
			to := func(name *byte) message {
				return message{hdr: unix.Msghdr{Name: name, Namelen: unix.SizeofSockaddrInet4, Iov: &iov, Iovlen: 1}}
			}
			messages := []message{to(name(loopback, port)), to(name([4]byte{255, 255, 255, 255}, 9))} // broadcasts need an option
			if n := raw(unix.SYS_SENDMMSG, uintptr(fd), addr(&messages[0].hdr), 2, 0); n != 1 {
				return fmt.Errorf("sendmmsg: %d", n)
			}
			if err := unix.Sendto(fd, x, 0, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 77}}); !errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("port 0: %v", err)
			}
			stream, other := made(unix.AF_INET, unix.SOCK_STREAM, 0), made(unix.AF_INET, unix.SOCK_STREAM, 0)
			fast := []message{to(name(loopback, tcp))}
			if n := raw(unix.SYS_SENDMMSG, uintptr(stream), addr(&fast[0].hdr), 1, unix.MSG_FASTOPEN); n != 1 {
				return fmt.Errorf("MSG_FASTOPEN: %d", n)
			}
			if r := raw(unix.SYS_CONNECT, uintptr(other), addr(name([4]byte{127, 0, 0, 77}, 9)), 4); r != -int64(unix.EINVAL) {
				return fmt.Errorf("a short address: %d", r)
			}
			w.say("received", received(there))
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("received") != "1" {
				return failed("received: %s", e.said("received"))
			}
			want := map[string]int{
				"202 " + e.said("peer") + " = 1": 1, "7 255.255.255.255:9 = no result": 1, "6 127.0.0.77:0 = -22": 1,
				"202 " + e.said("tcp") + " = 1": 1, "2 " + e.said("tcp") + " = no result": 1, "2 null = -22": 1,
			}
			for i := range e.own {
				l := &e.own[i]
				switch l.Type {
				case schemas.EventConnect, schemas.EventSendto, schemas.EventSendmsg, schemas.EventSendmmsg:
					if want[e.show(l)]--; want[e.show(l)] < 0 {
						return lie("false: %s", e.show(l))
					}
				}
			}
			for line, n := range want {
				if n > 0 {
					return lie("absent: %s", line)
				}
			}
			return exact()
		}})
}
