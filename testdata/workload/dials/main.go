//go:build linux

// Dials connects without waiting, and prints how each connect ended as the program is told: the endpoint,
// what connect returned, and SO_ERROR once the socket is ready, or "pending" if it never was.
//
//	dials [NUMBER]
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

var printing sync.Mutex

func main() {
	n := 8
	if len(os.Args) > 1 {
		var err error
		if n, err = strconv.Atoi(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "usage: dials [NUMBER]")
			os.Exit(2)
		}
	}
	open, closed := listener("127.0.0.1:0"), freePort()
	var all sync.WaitGroup
	for range n { // at once, in all threads
		all.Go(func() { dial(stream(unix.AF_INET, true), open) })
		all.Go(func() { dial(stream(unix.AF_INET, true), closed) })
		all.Go(func() { ordinary(open) })
	}
	all.Wait()
	dial(stream(unix.AF_INET, false), open)
	dial(stream(unix.AF_INET, false), closed)
	again := stream(unix.AF_INET, true) // one socket, several peers
	dial(again, closed)
	dial(again, open) // is told that the last one failed
	dial(again, open)
	disconnect(again)
	dial(again, closed)
	if six, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		to := six.Addr().(*net.TCPAddr).AddrPort().String()
		dial(stream(unix.AF_INET6, true), to)
		six.Close()
		dial(stream(unix.AF_INET6, true), to)
	}
	full := full()
	late := stream(unix.AF_INET, true)
	must(unix.SetsockoptInt(late, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 300))
	dial(late, full)
	left := stream(unix.AF_INET, true)
	dialFor(left, full, 50*time.Millisecond)
	unix.Close(left)
	dialFor(stream(unix.AF_INET, true), full, 50*time.Millisecond) // to the program's end
}

// dial connects and prints how that ended.
func dial(fd int, to string) { dialFor(fd, to, 10*time.Second) }

func dialFor(fd int, to string, wait time.Duration) {
	err := unix.Connect(fd, address(to))
	if err != unix.EINPROGRESS {
		say(to, err, "returned")
		return
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	for until := time.Now().Add(wait); ; {
		n, polled := unix.Poll(poll, max(0, int(time.Until(until).Milliseconds())))
		if polled == unix.EINTR {
			continue
		}
		must(polled)
		if n == 0 {
			say(to, err, "pending")
			return
		}
		break
	}
	told, failed := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	must(failed)
	say(to, err, strconv.Itoa(-told))
}

// ordinary connects as any Go program does.
func ordinary(to string) {
	c, err := net.Dial("tcp4", to)
	must(err)
	say(to, unix.EINPROGRESS, "0")
	c.Close()
}

func disconnect(fd int) {
	var unspec [16]byte // the family AF_UNSPEC
	if _, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), pointer(&unspec[0]), 16); e != 0 {
		must(e)
	}
}

// full listens, and has no room for another connection.
func full() string {
	fd := stream(unix.AF_INET, true)
	must(unix.Bind(fd, address("127.0.0.1:0")))
	must(unix.Listen(fd, 0))
	at, err := unix.Getsockname(fd)
	must(err)
	to := fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port)
	dial(stream(unix.AF_INET, true), to)
	return to
}

func stream(family int, async bool) int {
	kind := unix.SOCK_STREAM | unix.SOCK_CLOEXEC
	if async {
		kind |= unix.SOCK_NONBLOCK
	}
	fd, err := unix.Socket(family, kind, 0)
	must(err)
	return fd
}

func listener(at string) string {
	l, err := net.Listen("tcp", at)
	must(err)
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				return
			}
		}
	}()
	return l.Addr().String()
}

// freePort is an endpoint where nobody listens: the socket that keeps the port is not closed.
func freePort() string {
	fd := stream(unix.AF_INET, true)
	must(unix.Bind(fd, address("127.0.0.1:0")))
	at, err := unix.Getsockname(fd)
	must(err)
	return fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port)
}

func address(of string) unix.Sockaddr {
	a, err := net.ResolveTCPAddr("tcp", of)
	must(err)
	if ip := a.IP.To4(); ip != nil {
		return &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte(ip)}
	}
	return &unix.SockaddrInet6{Port: a.Port, Addr: [16]byte(a.IP)}
}

func say(to string, returned error, told string) {
	var e unix.Errno
	errors.As(returned, &e)
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(to, -int(e), told)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "dials:", err)
		os.Exit(1)
	}
}
