//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

func init() {
	add(attack{name: "a thread changes open_how", class: "B7", user: true, chance: true,
		what: "openat2 while another thread changes the flags in memory; F_GETFL says which the kernel took",
		run: func(w *world) error {
			if err := os.WriteFile("file", nil, 0o600); err != nil {
				return err
			}
			how := unix.OpenHow{}
			name := text("file")
			stop := meanwhile(func(i int) { atomic.StoreUint64(&how.Flags, uint64(i&1)*unix.O_APPEND) })
			defer stop()
			flags := ""
			for range manyTimes {
				fd := raw(unix.SYS_OPENAT2, cwd, addr(name), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how))
				if fd < 0 {
					return unix.Errno(-fd)
				}
				got := raw(unix.SYS_FCNTL, uintptr(fd), unix.F_GETFL, 0)
				raw(unix.SYS_CLOSE, uintptr(fd))
				flags += fmt.Sprint(got & unix.O_APPEND >> 10 & 1)
			}
			w.say("append", flags)
			return nil
		},
		judge: func(e *evidence) verdict {
			took, at, mark := e.said("append"), 0, ""
			for i := range e.own {
				l := &e.own[i]
				if l.Type != schemas.EventOpenat || l.text() != e.path("file") || l.Flags == nil || *l.Flags&unix.O_CREAT != 0 {
					continue
				}
				if at == len(took) {
					return lie("false: one open too many")
				}
				if appends := *l.Flags&unix.O_APPEND != 0; appends != (took[at] == '1') {
					if l.marked() == "" {
						return lie("false: flags %#o of open %d", *l.Flags, at)
					}
					mark = l.marked()
				}
				at++
			}
			switch {
			case at != len(took):
				return lie("absent: %d of %d opens", len(took)-at, len(took))
			case mark != "":
				return declared("%s", mark)
			}
			return exact()
		}})

	add(attack{name: "a thread changes the address of bind", class: "B7", user: true, chance: true,
		what: "bind while another thread changes the port in memory; getsockname says which the kernel took",
		run: func(w *world) error {
			a := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: loopback}
			ports := make([]uint16, 2)
			for i := range ports {
				fd, port, err := served(unix.SOCK_DGRAM) // ports that are free
				if err != nil {
					return err
				}
				binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&ports[i]))[:], uint16(port))
				unix.Close(fd)
			}
			stop := meanwhile(func(i int) { a.Port = ports[i&1] })
			defer stop()
			for i := range manyTimes / 4 {
				fd := raw(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, 0)
				if r := raw(unix.SYS_BIND, uintptr(fd), addr(&a), unix.SizeofSockaddrInet4); r == 0 {
					sa, err := unix.Getsockname(int(fd))
					if err != nil {
						return err
					}
					w.say(fmt.Sprint(i), local4(sa.(*unix.SockaddrInet4).Port))
				}
				raw(unix.SYS_CLOSE, uintptr(fd))
			}
			return nil
		},
		judge: func(e *evidence) verdict {
			var list []fact
			for i := range manyTimes / 4 {
				if name := e.said(fmt.Sprint(i)); name != "" {
					list = append(list, fact{kind: schemas.EventBind, value: name})
				}
			}
			var own []told
			for _, l := range e.own { // without the two that looked for free ports, and those refused
				if l.Type == schemas.EventBind && l.Status == schemas.StatusSuccess {
					own = append(own, l)
				}
			}
			if len(own) < 2 {
				return lie("absent: all")
			}
			e.own = own[2:]
			return e.compare(list)
		}})

	add(attack{name: "a descriptor changed while fchmod waits", class: "A10", user: true, chance: true,
		what: "fchmod waits for the lock of its file, which a large write holds; meanwhile another file is put on the descriptor",
		run: func(w *world) error {
			dir, err := os.MkdirTemp("/dev/shm", "attacks-")
			if err != nil {
				return notHere("no memory file system")
			}
			defer os.RemoveAll(dir)
			fd, err := unix.Open(dir+"/big", unix.O_CREAT|unix.O_RDWR, 0o600)
			if err != nil {
				return err
			}
			other, err := unix.Open("other", unix.O_CREAT|unix.O_RDWR, 0o600)
			if err != nil {
				return err
			}
			buf := make([]byte, 8<<20)
			var parts []unix.Iovec
			for range 12 {
				v := unix.Iovec{Base: &buf[0]}
				v.SetLen(len(buf))
				parts = append(parts, v)
			}
			writer, _ := unix.Dup(fd)
			writing := make(chan bool)
			go func() {
				runtime.LockOSThread()
				raw(unix.SYS_PWRITEV, uintptr(writer), addr(&parts[0]), uintptr(len(parts)), 0)
				close(writing)
			}()
			time.Sleep(3 * time.Millisecond)
			changed := make(chan int64)
			go func() {
				runtime.LockOSThread()
				changed <- raw(unix.SYS_FCHMOD, uintptr(fd), 0o640)
			}()
			time.Sleep(3 * time.Millisecond)
			raw(unix.SYS_DUP3, uintptr(other), uintptr(fd), 0)
			w.say("ret", <-changed)
			<-writing
			var st unix.Stat_t
			unix.Fstat(writer, &st)
			w.say("changed", st.Mode&0o777 == 0o640)
			w.say("name", dir+"/big")
			return nil
		},
		judge: func(e *evidence) verdict {
			if e.said("ret") != "0" {
				return failed("fchmod: %s", e.said("ret"))
			}
			name := e.path("other")
			if e.said("changed") == "true" {
				name = e.said("name")
			}
			return e.compare(done(schemas.EventChmod, name))
		}})

	add(attack{name: "the address in the packet itself", class: "B10",
		what: "a raw socket sends a packet whose own header (IP_HDRINCL) has another destination than the call",
		run: func(w *world) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
			if err != nil {
				return noSuch(err, "no raw sockets here")
			}
			packet := make([]byte, 28)
			packet[0], packet[8], packet[9] = 0x45, 64, unix.IPPROTO_UDP
			copy(packet[12:], loopback[:])
			copy(packet[16:], []byte{127, 0, 0, 66})
			return unix.Sendto(fd, packet, 0, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 55}})
		},
		judge: func(e *evidence) verdict {
			for i := range e.own {
				l := &e.own[i]
				if l.Type != schemas.EventSendto {
					continue
				}
				switch {
				case l.text() == "127.0.0.66:0" || l.text() == "127.0.0.66":
					return exact()
				case l.marked() != "":
					return declared("%s", l.marked())
				case e.noted("IP_HDRINCL") || e.noted("packets"):
					return declared("s2_blind_spots")
				}
				return lie("false: %s", e.show(l))
			}
			return lie("absent: a packet")
		}})
}
