//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// noPeer is an address that the attacks name and never reach.
var noPeer = &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 77}}

// made is a new socket; -1 makes the next call fail.
func made(family, kind, protocol int) int {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return -1
	}
	return fd
}

// peerOf is the address of a socket's peer, as getpeername has it.
func peerOf(fd int) string {
	switch sa, _ := unix.Getpeername(fd); a := sa.(type) {
	case *unix.SockaddrInet4:
		return fmt.Sprintf("%d.%d.%d.%d:%d", a.Addr[0], a.Addr[1], a.Addr[2], a.Addr[3], a.Port)
	case *unix.SockaddrInet6:
		return fmt.Sprintf("[::1]:%d", a.Port)
	case *unix.SockaddrUnix:
		return "unix:" + a.Name
	}
	return "none"
}

func init() {
	add(attack{name: "addresses that sockets ignore", class: "B1", user: true,
		what: "sendmsg with an address on a connected TCP socket, sendto with one on a seqpacket socket, and with MSG_MORE a second address",
		run: func(w *world) error {
			_, port, err := served(unix.SOCK_STREAM)
			if err != nil {
				return err
			}
			there, udp, err := served(unix.SOCK_DGRAM)
			if err != nil {
				return err
			}
			tcp, pair, more := made(unix.AF_INET, unix.SOCK_STREAM, 0), [2]int{}, made(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0); err != nil {
				return err
			}
			err = errors.Join(unix.Connect(tcp, &unix.SockaddrInet4{Port: port, Addr: loopback}),
				unix.Sendmsg(tcp, []byte("x"), nil, noPeer, 0),
				unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: "@nobody"}),
				unix.Sendto(more, []byte("a"), unix.MSG_MORE, &unix.SockaddrInet4{Port: udp, Addr: loopback}),
				unix.Sendto(more, []byte("b"), 0, noPeer))
			w.say("tcp", peerOf(tcp))
			w.say("udp", local4(udp))
			w.say("received", received(there))
			return err
		},
		judge: func(e *evidence) verdict {
			if e.said("received") != "1" {
				return failed("received: %s", e.said("received"))
			}
			return e.compare(append(done(schemas.EventConnect, e.said("tcp")), done(schemas.EventSendto, e.said("udp"))...), schemas.EventSendmsg)
		}})

	add(attack{name: "control data on a connected socket", class: "B1", user: true, ordinary: true,
		what: "a datagram with a time to live and without an address, on a connected UDP socket",
		run: func(w *world) error {
			there, port, err := served(unix.SOCK_DGRAM)
			if err != nil {
				return err
			}
			fd := made(unix.AF_INET, unix.SOCK_DGRAM, 0)
			control := make([]byte, unix.CmsgSpace(4))
			binary.NativeEndian.PutUint64(control, uint64(unix.CmsgLen(4)))
			binary.NativeEndian.PutUint32(control[8:], unix.IPPROTO_IP)
			binary.NativeEndian.PutUint32(control[12:], unix.IP_TTL)
			control[unix.CmsgLen(0)] = 9
			err = errors.Join(unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: loopback}), unix.Sendmsg(fd, []byte("x"), control, nil, 0))
			w.say("peer", peerOf(fd))
			w.say("received", received(there))
			return err
		},
		judge: func(e *evidence) verdict {
			if e.said("received") != "1" {
				return failed("received: %s", e.said("received"))
			}
			return e.compare(done(schemas.EventConnect, e.said("peer")), schemas.EventSendmsg, schemas.EventSendto)
		}})

	add(attack{name: "an address that stands for this machine", class: "B3", user: true, ordinary: true,
		what: "connect to 0.0.0.0 and to ::, sendto to 0.0.0.0 and without a family",
		run: func(w *world) error {
			_, port, err := served(unix.SOCK_STREAM)
			if err != nil {
				return err
			}
			there, udp, err := served(unix.SOCK_DGRAM)
			if err != nil {
				return err
			}
			four, six, sender := made(unix.AF_INET, unix.SOCK_STREAM, 0), made(unix.AF_INET6, unix.SOCK_DGRAM, 0), made(unix.AF_INET, unix.SOCK_DGRAM, 0)
			err = errors.Join(unix.Connect(four, &unix.SockaddrInet4{Port: port}), unix.Connect(six, &unix.SockaddrInet6{Port: 9}),
				unix.Sendto(sender, []byte("x"), 0, &unix.SockaddrInet4{Port: udp}))
			name := make([]byte, unix.SizeofSockaddrInet4)
			binary.BigEndian.PutUint16(name[2:], uint16(udp))
			copy(name[4:], loopback[:])
			raw(unix.SYS_SENDTO, uintptr(sender), addr(&name[0]), 1, 0, addr(&name[0]), uintptr(len(name)))
			w.say("four", peerOf(four))
			w.say("six", peerOf(six))
			w.say("udp", local4(udp))
			w.say("received", received(there))
			return err
		},
		judge: func(e *evidence) verdict {
			if e.said("received") != "2" {
				return failed("received: %s", e.said("received"))
			}
			return e.compare(append(done(schemas.EventConnect, e.said("four"), e.said("six")), done(schemas.EventSendto, e.said("udp"), e.said("udp"))...))
		}})

	add(attack{name: "a unix socket by another name", class: "B3", user: true, ordinary: true,
		what: "connect to a unix socket through a symbolic link",
		run: func(w *world) error {
			server, fd := made(unix.AF_UNIX, unix.SOCK_STREAM, 0), made(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			err := errors.Join(unix.Bind(server, &unix.SockaddrUnix{Name: w.dir + "/real"}), unix.Listen(server, 1),
				unix.Symlink("real", w.dir+"/link"), unix.Connect(fd, &unix.SockaddrUnix{Name: w.dir + "/link"}))
			w.say("peer", peerOf(fd))
			return err
		},
		judge: func(e *evidence) verdict { return e.compare(done(schemas.EventConnect, e.said("peer"))) }})

	add(attack{name: "data in the first packet", class: "B1", user: true, ordinary: true,
		what: "sendto with MSG_FASTOPEN connects a TCP socket",
		run: func(w *world) error {
			_, port, err := served(unix.SOCK_STREAM)
			if err != nil {
				return err
			}
			fd := made(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err := unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: port, Addr: loopback}); err != nil {
				return noSuch(err, "no fast open here")
			}
			w.say("peer", peerOf(fd))
			return nil
		},
		judge: func(e *evidence) verdict {
			for i := range e.own { // the hook saw the connect, and no call reports its end
				if l := &e.own[i]; l.Type == schemas.EventConnect && l.text() == e.said("peer") && l.Return == nil {
					return e.compare(done(schemas.EventSendto, e.said("peer")))
				}
			}
			return lie("absent: the connection")
		}})

	add(attack{name: "a descriptor replaced while connect waits", class: "B6", user: true,
		what: "connect to a unix socket whose queue is full waits; meanwhile a thread puts a socket with another peer on its descriptor",
		run: func(w *world) error {
			wanted, other := made(unix.AF_UNIX, unix.SOCK_STREAM, 0), made(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			first, decoy, fd := made(unix.AF_UNIX, unix.SOCK_STREAM, 0), made(unix.AF_UNIX, unix.SOCK_STREAM, 0), made(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err := errors.Join(unix.Bind(wanted, &unix.SockaddrUnix{Name: w.dir + "/wanted"}), unix.Listen(wanted, 0),
				unix.Bind(other, &unix.SockaddrUnix{Name: w.dir + "/other"}), unix.Listen(other, 1),
				unix.Connect(first, &unix.SockaddrUnix{Name: w.dir + "/wanted"}), unix.Connect(decoy, &unix.SockaddrUnix{Name: w.dir + "/other"})); err != nil {
				return err
			}
			ret := make(chan error)
			var caller waiter
			go func() {
				runtime.LockOSThread()
				caller.calls()
				ret <- unix.Connect(fd, &unix.SockaddrUnix{Name: w.dir + "/wanted"})
			}()
			if err := caller.asleep(); err != nil {
				return err
			}
			if err := unix.Dup3(decoy, fd, 0); err != nil {
				return err
			}
			for range 2 {
				if _, _, err := unix.Accept(wanted); err != nil {
					return err
				}
			}
			return <-ret
		},
		judge: func(e *evidence) verdict {
			wanted, other := "unix:"+e.path("wanted"), "unix:"+e.path("other")
			v := e.compare(done(schemas.EventConnect, wanted, other, wanted))
			if v.result == isLie && e.noted("unix socket endpoints (") {
				return declared("s2_blind_spots: unix socket endpoints")
			}
			return v
		}})

	add(attack{name: "a packet without an address", class: "B10",
		what: "a connected raw socket sends a packet whose own header (IP_HDRINCL) has another destination, without an address",
		run: func(w *world) error {
			fd := made(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
			there := made(unix.AF_INET, unix.SOCK_RAW, 253)
			if fd < 0 || there < 0 {
				return notHere("no raw sockets here")
			}
			packet := make([]byte, 21)
			packet[0], packet[8], packet[9] = 0x45, 64, 253
			copy(packet[16:], noPeer.Addr[:])
			err := errors.Join(unix.Connect(fd, &unix.SockaddrInet4{Addr: loopback}), unix.Send(fd, packet, 0))
			w.say("received", received(there))
			return err
		},
		judge: func(e *evidence) verdict {
			if e.said("received") != "1" {
				return failed("received: %s", e.said("received"))
			}
			return e.compare(append(done(schemas.EventConnect, "127.0.0.1:0"), done(schemas.EventSendto, "127.0.0.77:0")...))
		}})
}
