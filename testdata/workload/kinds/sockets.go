//go:build linux

package main

import (
	"net/netip"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/testdata/workload/made"
)

type endpoint = netip.AddrPort

func inet4(a endpoint) unix.RawSockaddrInet4 {
	return unix.RawSockaddrInet4{Family: unix.AF_INET, Port: a.Port()>>8 | a.Port()<<8, Addr: a.Addr().As4()}
}

func inet6(a endpoint) unix.RawSockaddrInet6 {
	return unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: a.Port()>>8 | a.Port()<<8, Addr: a.Addr().As16()}
}

func text4(a endpoint) string { return a.String() }

// raw encodes an address as the kernel reads it.
func raw(a endpoint) []byte {
	if a.Addr().Is4() {
		sa := inet4(a)
		return append([]byte(nil), (*[unix.SizeofSockaddrInet4]byte)(unsafe.Pointer(&sa))[:]...)
	}
	sa := inet6(a)
	return append([]byte(nil), (*[unix.SizeofSockaddrInet6]byte)(unsafe.Pointer(&sa))[:]...)
}

// rawUnix is the address of a unix socket; a leading @ means the abstract namespace.
func rawUnix(name string) []byte {
	b := append([]byte{unix.AF_UNIX, 0}, name...)
	if name[0] == '@' {
		b[2] = 0
		return b
	}
	return append(b, 0)
}

func socket(domain, typ int) int {
	fd, err := unix.Socket(domain, typ|unix.SOCK_CLOEXEC, 0)
	made.Must("socket", made.Ret(err))
	return fd
}

// withAddr makes a call of the form (fd, addr, len) and prints it.
func withAddr(op string, typ int, nr uintptr, fd int, sa []byte, value string) int64 {
	r := made.Call(nr, uintptr(fd), uintptr(unsafe.Pointer(&sa[0])), uintptr(len(sa)))
	runtime.KeepAlive(sa)
	made.Line(op, typ, value, r)
	return r
}

func bound(fd int) endpoint {
	sa, err := unix.Getsockname(fd)
	made.Must("getsockname", made.Ret(err))
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port))
	}
	return endpoint{}
}

// bindOn binds a socket to a port of the kernel's choice.
func bindOn(op string, domain, typ int, ip netip.Addr) (int, endpoint) {
	fd := socket(domain, typ)
	sa := raw(netip.AddrPortFrom(ip, 0))
	r := made.Must("bind", made.Call(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&sa[0])), uintptr(len(sa))))
	runtime.KeepAlive(sa)
	made.Line(op, 203, bound(fd).String(), r)
	return fd, bound(fd)
}

func listenOn(op string, domain int, ip netip.Addr) (endpoint, func()) {
	fd, a := bindOn(op+"-bind", domain, unix.SOCK_STREAM, ip)
	made.Line(op+"-listen", 204, a.String(), made.Must("listen", made.Call(unix.SYS_LISTEN, uintptr(fd), 16)))
	return a, func() { unix.Close(fd) }
}

func listen4(op string) (endpoint, func()) {
	return listenOn(op, unix.AF_INET, netip.MustParseAddr("127.0.0.1"))
}

func connect(op string, domain, typ int, sa []byte, value string) {
	fd := socket(domain, typ)
	withAddr(op, 2, unix.SYS_CONNECT, fd, sa, value)
	unix.Close(fd)
}

// inet connects only to this machine, over IPv4 and IPv6.
func inet() {
	family("v4", unix.AF_INET, netip.MustParseAddr("127.0.0.1"))
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet6{Addr: netip.IPv6Loopback().As16()})
		r := made.Ret(err)
		value := "[::1]:0"
		if r == 0 {
			value = bound(fd).String()
		}
		made.Line("probe-v6-bind", 203, value, r)
		unix.Close(fd)
	}
	if err != nil {
		made.Skipped("IPv6", err)
		return
	}
	family("v6", unix.AF_INET6, netip.IPv6Loopback())
}

func family(v string, domain int, ip netip.Addr) {
	a, stop := listenOn(v, domain, ip)
	connect(v+"-connect", domain, unix.SOCK_STREAM, raw(a), a.String())
	connect(v+"-connect-nonblock", domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, raw(a), a.String())
	stop()
	fd, closed := bindOn(v+"-bind", domain, unix.SOCK_STREAM, ip) // bound, not listening
	connect(v+"-refused", domain, unix.SOCK_STREAM, raw(closed), closed.String())
	unix.Close(fd)

	sink, to := bindOn(v+"-bind-udp", domain, unix.SOCK_DGRAM, ip)
	fd = socket(domain, unix.SOCK_DGRAM)
	sends(v, fd, raw(to), to.String())
	if ip.Is4() { // without a family the kernel takes the address for IPv4
		sa, data := raw(to), []byte("marked")
		sa[0] = 0
		made.Line(v+"-sendto-no-family", 6, to.String(), made.Call(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&data[0])),
			uintptr(len(data)), 0, uintptr(unsafe.Pointer(&sa[0])), uintptr(len(sa))))
		runtime.KeepAlive(sa)
	}
	unix.Close(fd)
	unix.Close(sink)
	connect(v+"-connect-udp", domain, unix.SOCK_DGRAM, raw(to), to.String())
}

// sends makes one sendto, one sendmsg, and one sendmmsg of three messages.
func sends(v string, fd int, sa []byte, value string) {
	data := []byte("marked")
	r := made.Call(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), 0,
		uintptr(unsafe.Pointer(&sa[0])), uintptr(len(sa)))
	made.Line(v+"-sendto", 6, value, r)

	iov := unix.Iovec{Base: &data[0]}
	iov.SetLen(len(data))
	msg := unix.Msghdr{Name: &sa[0], Namelen: uint32(len(sa)), Iov: &iov}
	msg.SetIovlen(1)
	r = made.Call(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), 0)
	made.Line(v+"-sendmsg", 7, value, r)

	var vec [3]struct {
		hdr unix.Msghdr
		n   uint32
	}
	for i := range vec {
		vec[i].hdr = msg
	}
	made.Must("sendmmsg", made.Call(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&vec[0])), 3, 0))
	made.Line(v+"-sendmmsg", 202, value, 3, made.Times(3), made.NoRet())
	runtime.KeepAlive(data)
	runtime.KeepAlive(sa)
	runtime.KeepAlive(&iov)
}

// unixSockets uses names in the file system and in the abstract namespace.
func unixSockets() {
	abstract := "@M-" + filepath.Base(dir)
	for _, n := range []struct{ v, name string }{{"unix", at("M-u")}, {"abstract", abstract}} {
		value := "unix:" + n.name
		l := socket(unix.AF_UNIX, unix.SOCK_STREAM)
		withAddr(n.v+"-bind", 203, unix.SYS_BIND, l, rawUnix(n.name), value)
		connect(n.v+"-refused", unix.AF_UNIX, unix.SOCK_STREAM, rawUnix(n.name), value)
		made.Line(n.v+"-listen", 204, value, made.Call(unix.SYS_LISTEN, uintptr(l), 16))
		connect(n.v+"-connect", unix.AF_UNIX, unix.SOCK_STREAM, rawUnix(n.name), value)
		unix.Close(l)

		dgram := n.name + "-d"
		value = "unix:" + dgram
		sink := socket(unix.AF_UNIX, unix.SOCK_DGRAM)
		withAddr(n.v+"-bind-dgram", 203, unix.SYS_BIND, sink, rawUnix(dgram), value)
		fd := socket(unix.AF_UNIX, unix.SOCK_DGRAM)
		sends(n.v, fd, rawUnix(dgram), value)
		unix.Close(fd)
		unix.Close(sink)
	}
	odd := at("M-u\xff\n")
	connect("unix-enoent", unix.AF_UNIX, unix.SOCK_STREAM, rawUnix(odd), "unix:"+odd)
	connect("unix-enoent-escaped", unix.AF_UNIX, unix.SOCK_STREAM, rawUnix(at(`M-u\xff\n`)), "unix:"+at(`M-u\xff\n`))
	fd := socket(unix.AF_UNIX, unix.SOCK_STREAM)
	r := made.Call(unix.SYS_CONNECT, uintptr(fd), 8, 16)
	made.Line("connect-efault", 2, "", r, made.Null())
	unix.Close(fd)
}
