//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/schemas"
)

// inOrder compares the lines of one type with what the calls really did, one after the other. What others can make of a
// structure or an address in their memory, and undo, is declared with a count.
func (e *evidence) inOrder(kind uint32, took []string, tells func(l *told) string) verdict {
	at, mark := 0, ""
	for i := range e.own {
		l := &e.own[i]
		if l.Type != kind || tells(l) == "" {
			continue
		}
		if at == len(took) {
			return lie("false: one line too many: %s", e.show(l))
		}
		if tells(l) != took[at] && l.marked() == "" {
			if !e.noted(schemas.BlindArguments + " (") {
				return lie("false: %s, it was %s", e.show(l), took[at])
			}
			mark = "s2_blind_spots: " + schemas.BlindArguments
		}
		if tells(l) != took[at] && mark == "" {
			mark = l.marked()
		}
		at++
	}
	switch {
	case at != len(took):
		return lie("absent: %d of %d", len(took)-at, len(took))
	case mark != "":
		return declared("%s", mark)
	}
	return exact()
}

func init() {
	add(attack{name: "a thread changes what openat2 cuts", class: "B7", user: true, chance: true,
		what: "openat2 while another thread sets O_TRUNC in memory and takes it away; the length of the file says which the kernel took",
		run: func(w *world) error {
			how := unix.OpenHow{Flags: unix.O_WRONLY}
			name := text("cut")
			stop := meanwhile(func(i int) { atomic.StoreUint64(&how.Flags, uint64(unix.O_WRONLY|i&1*unix.O_TRUNC)) })
			defer stop()
			took := ""
			if err := os.WriteFile("cut", []byte("x"), 0o600); err != nil {
				return err
			}
			for range manyTimes {
				fd := raw(unix.SYS_OPENAT2, cwd, addr(name), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how))
				if fd < 0 {
					return unix.Errno(-fd)
				}
				var st unix.Stat_t
				unix.Fstat(int(fd), &st)
				unix.Write(int(fd), []byte("x"))
				unix.Close(int(fd))
				took += fmt.Sprint(1 - st.Size)
			}
			w.say("cut", took)
			return nil
		},
		judge: func(e *evidence) verdict {
			return e.inOrder(schemas.EventOpenat, strings.Split(e.said("cut"), ""), func(l *told) string {
				if l.text() != e.path("cut") || l.Flags == nil || *l.Flags&unix.O_CREAT != 0 {
					return ""
				}
				return fmt.Sprint(*l.Flags & unix.O_TRUNC / unix.O_TRUNC)
			})
		}})

	add(attack{name: "a thread changes the address of a raw packet", class: "B7", chance: true,
		what: "sendto from a raw socket while another thread changes the address in memory; the packet that arrives says which the kernel took",
		run: func(w *world) error {
			fd, there := made(unix.AF_INET, unix.SOCK_RAW, 253), made(unix.AF_INET, unix.SOCK_RAW, 253)
			if fd < 0 || there < 0 {
				return notHere("no raw sockets here")
			}
			a := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: loopback}
			stop := meanwhile(func(i int) { a.Addr[3] = byte(2 + i&1) })
			defer stop()
			packet, took := make([]byte, 64), []string{}
			for range manyTimes / 4 {
				if r := raw(unix.SYS_SENDTO, uintptr(fd), addr(&packet[0]), 8, 0, addr(&a), unix.SizeofSockaddrInet4); r < 0 {
					return unix.Errno(-r)
				}
				b := make([]byte, 64)
				if n, _, err := unix.Recvfrom(there, b, 0); err != nil || n < 20 {
					return fmt.Errorf("%d bytes received: %w", n, err)
				}
				took = append(took, fmt.Sprintf("127.0.0.%d:0", b[19]))
			}
			w.say("took", strings.Join(took, " "))
			return nil
		},
		judge: func(e *evidence) verdict {
			return e.inOrder(schemas.EventSendto, strings.Fields(e.said("took")), func(l *told) string { return l.text() })
		}})

	add(attack{name: "a raw socket replaced while it sends", class: "A10", chance: true,
		what: "sendto from a raw socket to an address in its packet (IP_HDRINCL), while another thread puts one without that option on the descriptor",
		run: func(w *world) error {
			own, plain, there := made(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW), made(unix.AF_INET, unix.SOCK_RAW, 253), made(unix.AF_INET, unix.SOCK_RAW, 253)
			if own < 0 || plain < 0 || there < 0 {
				return notHere("no raw sockets here")
			}
			const at = 501
			unix.Dup3(own, at, 0)
			stop := meanwhile(func(i int) { raw(unix.SYS_DUP3, uintptr([]int{own, plain}[i&1]), at, 0) })
			defer stop()
			packet, took := make([]byte, 28), []string{}
			packet[0], packet[8], packet[9] = 0x45, 64, 253
			copy(packet[16:], noPeer.Addr[:])
			a := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: loopback}
			for range manyTimes / 4 {
				if r := raw(unix.SYS_SENDTO, at, addr(&packet[0]), 28, 0, addr(&a), unix.SizeofSockaddrInet4); r < 0 {
					return unix.Errno(-r)
				}
				b := make([]byte, 64)
				if n, _, err := unix.Recvfrom(there, b, 0); err != nil || n < 20 {
					return fmt.Errorf("%d bytes received: %w", n, err)
				}
				took = append(took, fmt.Sprintf("%d.%d.%d.%d:0", b[16], b[17], b[18], b[19]))
			}
			w.say("took", strings.Join(took, " "))
			return nil
		},
		judge: func(e *evidence) verdict {
			return e.inOrder(schemas.EventSendto, strings.Fields(e.said("took")), func(l *told) string { return l.text() })
		}})
}
