//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/testdata/workload/uring"
)

// loopback4 is 127.0.0.1 with a port, as a socket address.
func loopback4(port uint16) *unix.RawSockaddrInet4 {
	return &unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port<<8 | port>>8, Addr: [4]byte{127, 0, 0, 1}}
}

// ringSend sends a byte to an address by a request, and says its result.
func ringSend(w *world, domain, kind, protocol int, to *unix.RawSockaddrInet4, data []byte, message bool) error {
	u, err := newRing(8, 0)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(domain, kind, protocol)
	if err != nil {
		return err
	}
	iov := unix.Iovec{Base: &data[0], Len: uint64(len(data))}
	m := unix.Msghdr{Name: (*byte)(unsafe.Pointer(to)), Namelen: unix.SizeofSockaddrInet4, Iov: &iov, Iovlen: 1}
	e := uring.Entry{Op: uring.Send, FD: int32(fd), Addr: uint64(addr(&data[0])), Len: uint32(len(data)), Off: uint64(addr(to)), Slot: unix.SizeofSockaddrInet4}
	if message {
		e = uring.Entry{Op: uring.Sendmsg, FD: int32(fd), Addr: uint64(addr(&m)), Len: 1}
	}
	w.say("cqe", u.Do(e))
	runtime.KeepAlive(&m)
	return nil
}

func init() {
	// sends judges one send of that kind to a peer.
	sends := func(kind uint32, peer string) func(*evidence) verdict {
		return func(e *evidence) verdict {
			if e.said("cqe") == "" || e.said("cqe")[0] == '-' {
				return failed("the completion says %s", e.said("cqe"))
			}
			return e.compare(done(kind, peer))
		}
	}
	echo := []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0}
	add(attack{name: "ring sends from a raw socket", class: "A7", judge: sends(schemas.EventSendto, "127.0.0.1:0"),
		what: "a request sends from a raw socket to an address",
		run: func(w *world) error {
			return ringSend(w, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, loopback4(0), echo, false)
		}})
	add(attack{name: "ring sends a message from a raw socket", class: "A7", judge: sends(schemas.EventSendmsg, "127.0.0.1:0"),
		what: "the same with a message's header",
		run: func(w *world) error {
			return ringSend(w, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, loopback4(0), echo, true)
		}})
	add(attack{name: "ring sends a datagram", class: "A7", user: true, ordinary: true, judge: sends(schemas.EventSendto, "127.0.0.1:9"),
		what: "a request sends a datagram to an address: the hook sees it too",
		run: func(w *world) error {
			return ringSend(w, unix.AF_INET, unix.SOCK_DGRAM, 0, loopback4(9), []byte("x"), false)
		}})
	add(attack{name: "ring waits to connect", class: "B4", user: true, ordinary: true,
		what: "a request connects to a unix socket whose queue is full: the kernel tries it again until there is room",
		run: func(w *world) error {
			u, err := newRing(8, 0)
			if err != nil {
				return err
			}
			l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			name := w.path("socket")
			if err := unix.Bind(l, &unix.SockaddrUnix{Name: name}); err != nil {
				return err
			}
			unix.Listen(l, 0)
			first, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err := unix.Connect(first, &unix.SockaddrUnix{Name: name}); err != nil {
				return err
			}
			fd, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			sa := unix.RawSockaddrUnix{Family: unix.AF_UNIX}
			for i := range name {
				sa.Path[i] = int8(name[i])
			}
			u.Submit(uring.Entry{Op: uring.Connect, FD: int32(fd), Addr: uint64(addr(&sa)), Off: uint64(2 + len(name) + 1)})
			time.Sleep(50 * time.Millisecond)
			unix.Accept(l)
			w.say("cqe", u.Wait())
			runtime.KeepAlive(&sa)
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("cqe") != "0" {
				return failed("the completion says %s", e.said("cqe"))
			}
			at := "unix:" + e.path("socket")
			return e.compare(done(schemas.EventConnect, at, at))
		}})
	add(attack{name: "ring of many requests", class: "A5", user: true, ordinary: true,
		what: "an ordinary program that opens, and closes, and removes 2,000 files with 64 requests in flight",
		run: func(w *world) error {
			u, err := newRing(64, 0)
			if err != nil {
				return err
			}
			for range 2000 / 64 {
				for i := range 64 {
					u.Queue(openEntry(fmt.Sprint("f", i), unix.O_CREAT|unix.O_WRONLY, uint64(i)))
				}
				u.Enter(64)
				fds := []int32{}
				for r, ok := u.Result(); ok; r, ok = u.Result() {
					fds = append(fds, int32(r.Result))
				}
				for _, fd := range fds {
					u.Queue(uring.Entry{Op: uring.Close, FD: fd})
				}
				u.Enter(len(fds))
				for _, ok := u.Result(); ok; _, ok = u.Result() {
				}
			}
			return nil
		},
		judge: func(e *evidence) verdict {
			if n, _ := os.ReadDir(e.dir); len(n) != 64 {
				return failed("%d files", len(n))
			}
			var names []string
			for range 2000 / 64 {
				for i := range 64 {
					names = append(names, fmt.Sprint("f", i))
				}
			}
			return e.compare(done(schemas.EventOpenat, names...))
		}})
}
