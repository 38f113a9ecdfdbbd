//go:build linux

package main

import (
	"encoding/binary"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// socket makes a socket of some family and lets it do something.
func (a *actor) socket() {
	if !a.sockets {
		return
	}
	family := []int{unix.AF_INET, unix.AF_INET6, unix.AF_UNIX, unix.AF_NETLINK}[a.IntN(4)]
	kind := unix.SOCK_DGRAM
	if a.yes(3) {
		kind = unix.SOCK_STREAM
	}
	fd := raw(unix.SYS_SOCKET, uintptr(family), uintptr(kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC), 0)
	if fd < 0 {
		return
	}
	a.tell(-1, map[int]string{unix.SOCK_DGRAM: "datagram", unix.SOCK_STREAM: "stream"}[kind])
	for range 1 + a.IntN(4) {
		a.onSocket(uintptr(fd), kind)
	}
	raw(unix.SYS_CLOSE, uintptr(fd))
}

func (a *actor) onSocket(fd uintptr, kind int) {
	name, size := a.address()
	a.tell(unix.AT_FDCWD, "cwd")
	switch a.IntN(9) {
	case 0, 1:
		raw(unix.SYS_CONNECT, fd, name, size)
		a.names(fd)
	case 2, 3:
		bound, address := raw(unix.SYS_BIND, fd, name, size), a.keep[a.kept%len(a.keep)]
		a.names(fd)
		if bound == 0 {
			a.boundIn(address[:size])
		}
	case 4:
		raw(unix.SYS_LISTEN, fd, 5)
		a.names(fd)
	case 5:
		raw(unix.SYS_SENDTO, fd, a.bytes([]byte("x")), 1, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, name, size)
	case 6:
		data := []byte("x")
		iov := unix.Iovec{Base: &data[0], Len: 1}
		m := unix.Msghdr{Iov: &iov, Iovlen: 1, Namelen: uint32(size)}
		if size > 0 {
			m.Name = &a.keep[a.kept%len(a.keep)][0]
		}
		raw(unix.SYS_SENDMSG, fd, addr(&m), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	case 7:
		a.messages(fd, size)
	case 8:
		if kind == unix.SOCK_DGRAM { // a stream can send a signal
			raw(unix.SYS_WRITE, fd, a.bytes([]byte("x")), 1)
		}
	}
}

// message is struct mmsghdr.
type message struct {
	hdr unix.Msghdr
	len uint32
	_   uint32
}

// messages sends some with sendmmsg: without a name, or to an address of its own. The first address is the last that was made, of
// so many bytes.
func (a *actor) messages(fd, size uintptr) {
	data := []byte("x")
	iov := unix.Iovec{Base: &data[0], Len: 1}
	m := make([]message, 1+a.IntN(4))
	for i := range m {
		m[i].hdr = unix.Msghdr{Iov: &iov, Iovlen: 1}
		if !a.yes(3) && size > 0 {
			m[i].hdr.Name, m[i].hdr.Namelen = &a.keep[a.kept%len(a.keep)][0], uint32(size)
			_, size = a.address()
		}
	}
	raw(unix.SYS_SENDMMSG, fd, addr(&m[0]), uintptr(len(m)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
}

// boundIn tells in which directory a unix socket is that was bound now: symlinks may have led there.
func (a *actor) boundIn(address []byte) {
	if len(address) < 2 || binary.NativeEndian.Uint16(address) != unix.AF_UNIX {
		return
	}
	name, _, _ := strings.Cut(string(address[2:]), "\x00")
	if !strings.Contains(name, "/") {
		return
	}
	fd := raw(unix.SYS_OPENAT, cwd, a.bytes([]byte(path.Dir(name)+"\x00")), unix.O_PATH|unix.O_DIRECTORY)
	if fd < 0 {
		return
	}
	a.tell(int(fd), "bound:"+path.Base(name))
	raw(unix.SYS_CLOSE, uintptr(fd))
}

// names asks for the socket's names, so that strace shows them.
func (a *actor) names(fd uintptr) {
	buf := make([]byte, 128)
	for _, nr := range []uintptr{unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME} {
		n := uint32(len(buf))
		raw(nr, fd, addr(&buf[0]), addr(&n))
	}
}

// address is a socket address of some family, of this machine.
func (a *actor) address() (name, size uintptr) {
	port := []uint16{0, 9, uint16(20000 + a.IntN(20))}[a.IntN(3)]
	b := make([]byte, 28)
	switch a.IntN(5) {
	case 0:
		binary.NativeEndian.PutUint16(b, unix.AF_INET)
		binary.BigEndian.PutUint16(b[2:], port)
		copy(b[4:], []byte{127, 0, 0, 1})
		b = b[:16]
	case 1:
		binary.NativeEndian.PutUint16(b, unix.AF_INET6)
		binary.BigEndian.PutUint16(b[2:], port)
		b[23] = 1
	case 2:
		binary.NativeEndian.PutUint16(b, unix.AF_UNIX)
		b = append(b[:2], []string{"s1", "d1/s2", "none/s", "s3\x00", "l1"}[a.IntN(5)]...)
	case 3:
		binary.NativeEndian.PutUint16(b, unix.AF_UNIX)
		b = append(b[:2], "\x00attacks-"+[]string{"1", "2", "\n"}[a.IntN(3)]...)
	case 4:
		binary.NativeEndian.PutUint16(b, []uint16{unix.AF_UNSPEC, unix.AF_NETLINK, 77}[a.IntN(3)])
		b = b[:16]
	}
	size = uintptr(len(b))
	if a.yes(15) {
		size = uintptr(a.IntN(len(b) + 1))
	}
	return a.bytes(b), size
}
