//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

func init() {
	add(attack{name: "a file of another mount namespace", class: "A13",
		what: "a thread has mounts of its own; another one opens a file there through its root in /proc: by that name it has none itself",
		run: func(w *world) error {
			ready, end := make(chan error), make(chan bool)
			var tid int
			go func() {
				runtime.LockOSThread() // and ends with its namespace
				tid = unix.Gettid()
				err := errors.Join(unix.Mkdir("m", 0o700), ownMounts())
				if err == nil {
					err = errors.Join(unix.Mount("none", "m", "tmpfs", 0, ""), os.WriteFile(w.path("m/only"), nil, 0o600))
				}
				ready <- err
				<-end
			}()
			if err := <-ready; err != nil {
				return err
			}
			defer close(end)
			fd, err := unix.Open(fmt.Sprintf("/proc/self/task/%d/root%s", tid, w.path("m/only")), unix.O_RDONLY, 0)
			if err == nil {
				err = unix.Close(fd)
			}
			return err
		},
		judge: func(e *evidence) verdict {
			if e.exists("m/only") {
				return failed("the file is in this namespace too")
			}
			for i := range e.own {
				l := &e.own[i]
				if l.Type != schemas.EventOpenat || l.Flags == nil || *l.Flags&unix.O_CREAT != 0 {
					continue
				}
				switch {
				case l.text() == "detached:"+e.path("m/only"):
					return exact()
				case l.text() == e.path("m/only"):
					return lie("false: %s", e.show(l))
				}
			}
			return lie("absent: the open")
		}})

	add(attack{name: "a connect that waits for data", class: "B4", user: true,
		what: "a connect with TCP_FASTOPEN_CONNECT returns 0, and begins when the first data are sent: none are",
		run: func(w *world) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			const noCookie = 34
			if err := errors.Join(unix.SetsockoptInt(fd, unix.SOL_TCP, unix.TCP_FASTOPEN_CONNECT, 1), unix.SetsockoptInt(fd, unix.SOL_TCP, noCookie, 1)); err != nil {
				return notHere(err.Error())
			}
			if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: loopback, Port: 9}); err != nil {
				return err
			}
			_, err = unix.Getpeername(fd)
			w.say("peer", err)
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("peer") != unix.ENOTCONN.Error() {
				return failed("getpeername: %s", e.said("peer"))
			}
			for i := range e.own {
				switch l := &e.own[i]; {
				case l.Type != schemas.EventConnect:
				case l.text() != "127.0.0.1:9" || l.Status != "":
					return lie("false: %s, status %s", e.show(l), l.Status)
				default:
					return exact()
				}
			}
			return lie("absent: the connect")
		}})

	add(attack{name: "ring sends a header of its own", class: "A7",
		what: "a request sends a packet whose own header (IP_HDRINCL) has another destination than the address of the request",
		run: func(w *world) error {
			packet := make([]byte, 28)
			packet[0], packet[8], packet[9] = 0x45, 64, unix.IPPROTO_UDP
			copy(packet[12:], loopback[:])
			copy(packet[16:], []byte{127, 0, 0, 66})
			return ringSend(w, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW, loopback4(0), packet, false)
		},
		judge: func(e *evidence) verdict {
			if e.said("cqe") != "28" {
				return failed("the completion says %s", e.said("cqe"))
			}
			return only(e, schemas.EventSendto, "127.0.0.66:0")
		}})
}
