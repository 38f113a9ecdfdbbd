//go:build linux

package main

import (
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
			m := struct {
				hdr unix.Msghdr
				len uint32
				_   uint32
			}{hdr: unix.Msghdr{Name: &name[0], Namelen: unix.SizeofSockaddrInet4, Iov: &iov, Iovlen: 1}}
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
}
